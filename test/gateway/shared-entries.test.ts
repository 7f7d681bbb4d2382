import t from 'tap'
import { type Id, idBytes } from '../../src/format/id.js'
import { eventually } from '../eventually.js'
import { sha256 } from '../source/rig.js'
import { cachingRig, comparable, isFromCache, type Rig, skip, warm } from './response-cache-rig.js'
import { askAt } from './rig.js'

/** What one server of a program has answered, another one repeats: the same bytes, while nothing has changed. */

type Wish = { readonly method?: string; readonly headers?: Record<string, string> }

/** An answer is for one host, and the servers have ports of their own. */
const host = { host: 'a.example' }

function askOther({ edge }: Rig, path: string, { method = 'GET', headers = {} }: Wish = {}) {
  return askAt(edge.otherUrl, path, method, { ...host, ...headers })
}

function warmFirst(rig: Rig, path: string, { headers = {} }: Wish = {}): Promise<void> {
  return warm(rig, path, { headers: { ...host, ...headers } })
}

/** Content of which the other server has answered for nothing yet, beside some of which it has. */
async function begun() {
  const rig = await cachingRig(60, { isShared: true })
  const known = await rig.put(Buffer.from('known '.repeat(100)))
  const ids = [await rig.put(Buffer.from('one '.repeat(100))), await rig.put(Buffer.from('two '.repeat(100)))]
  const tag = (await askOther(rig, `/${known}`)).headers.etag ?? ''
  for (const headers of [{}, { 'if-none-match': tag }]) {
    await eventually('the other thread repeats the answer', async () => {
      const before = rig.fromCache()
      await askOther(rig, `/${known}`, { headers })
      return rig.fromCache() > before
    })
  }
  return { rig, known, ids }
}

t.test('the first answer of a server is the one that another has given', { skip }, async (t) => {
  const { rig, ids } = await begun()
  for (const id of ids) {
    const tag = (await askAt(rig.edge.stepwiseUrl, `/${id}`)).headers.etag ?? ''
    const wishes: Wish[] = [{}, { headers: { range: 'bytes=1-9' } }, { headers: { 'if-none-match': tag } }]
    for (const wish of wishes) {
      await warmFirst(rig, `/${id}`, wish)
      const before = rig.fromCache()
      const found = await askOther(rig, `/${id}`, wish)
      t.equal(rig.fromCache(), before + 1, `the first of all: ${JSON.stringify(wish)}`)
      const right = await askAt(rig.edge.stepwiseUrl, `/${id}`, 'GET', { ...host, ...wish.headers })
      t.equal(comparable(found), comparable(right))
      t.ok(await isFromCache(rig, () => askOther(rig, `/${id}`, wish)))
    }
    const before = rig.fromCache()
    const head = await askOther(rig, `/${id}`, { method: 'HEAD' })
    t.equal(rig.fromCache(), before + 1, 'the first HEAD of all')
    t.equal(comparable(head), comparable(await askAt(rig.edge.stepwiseUrl, `/${id}`, 'HEAD', host)))
  }
  await rig.close()
})

t.test('what has changed since is not taken over', { skip }, async (t) => {
  const { rig, ids, known } = await begun()
  const [one = '', two = ''] = ids
  for (const id of ids) await warmFirst(rig, `/${id}`)
  rig.block('id', idBytes(one as Id))
  const before = rig.fromCache()
  t.equal((await askOther(rig, `/${one}`)).status, 451)
  t.equal((await askOther(rig, `/${known}`)).status, 200)
  t.equal(rig.fromCache(), before, 'the list has another version')
  await warmFirst(rig, `/${two}`)
  await rig.store.remove(sha256(Buffer.from('two '.repeat(100))))
  t.equal((await askOther(rig, `/${two}`)).status, 404)
  const head = await askOther(rig, `/${two}`, { method: 'HEAD' })
  t.equal(comparable(head), comparable(await askAt(rig.edge.stepwiseUrl, `/${two}`, 'HEAD', host)))
  await rig.close()
})

t.test('a server that knows nothing of what an answer rests on decides for itself', { skip }, async (t) => {
  const rig = await cachingRig(60, { isShared: true })
  const id = await rig.put(Buffer.from('new '.repeat(100)))
  await warmFirst(rig, `/${id}`)
  const before = rig.fromCache()
  const found = await askOther(rig, `/${id}`)
  t.equal(rig.fromCache(), before)
  t.equal(comparable(found), comparable(await rig.edge.ask(`/${id}`)))
  await rig.close()
})

t.test('servers of other programs share nothing', { skip }, async (t) => {
  const [mine, yours] = [await begun(), await begun()]
  const [id = ''] = mine.ids
  await warmFirst(mine.rig, `/${id}`)
  const before = yours.rig.fromCache()
  t.equal((await yours.rig.edge.ask(`/${id}`)).status, 404)
  t.equal((await askOther(yours.rig, `/${id}`)).status, 404)
  t.equal(yours.rig.fromCache(), before)
  await mine.rig.close()
  t.equal((await askOther(yours.rig, `/${yours.known}`)).status, 200, 'and one may end before the other')
  await yours.rig.close()
})
