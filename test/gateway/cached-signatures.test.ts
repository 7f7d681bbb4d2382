import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Header } from '../../src/catalog/attributes.js'
import { type Id, idBytes } from '../../src/format/id.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { eventually } from '../eventually.js'
import { someId } from '../source/rig.js'
import { cachingRig, comparable, isFromCache, type Rig, skip, warm } from './response-cache-rig.js'
import { type Answered, askAt, freshened, stage } from './rig.js'

/** Signatures that the server makes by itself are those that the steps would have made. */

/** A signature is made anew where it is two seconds old, by the clock of the machine, which no test turns. */
async function signaturesAreOld(): Promise<void> {
  const second = Math.floor(systemClock.now() / 1000)
  await eventually('signatures are old', () => Math.floor(systemClock.now() / 1000) >= second + 2)
}

type Wish = { readonly method?: string; readonly headers?: Record<string, string> }

/** A header of an item with these tags. */
function headerWith(...tags: readonly (readonly [string, string])[]): Header {
  return {
    signatureType: 1,
    signature: Buffer.alloc(512, 1),
    owner: Buffer.alloc(512, 2),
    ownerAddress: someId(),
    target: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: tags.map(([name, value]) => ({ name: Buffer.from(name), value: Buffer.from(value) })),
  }
}

function createdOf({ headers }: Answered): number {
  return Number(/created=(\d+)/.exec(headers['signature-input'] ?? '')?.[1])
}

/** With everything but the id of the request, and the time of the answer. */
function all({ status, fields, body }: Answered): string {
  const rest = fields.filter(([name]) => !/^(x-request-id|date)$/i.test(name))
  return JSON.stringify([status, rest, body.toString('latin1')])
}

/** The answer must be what the steps say in the same second, to the last byte of the signature. */
async function isAsSigned(
  t: Test,
  rig: Rig,
  path: string,
  { method = 'GET', headers = {} }: Wish,
  found: Answered,
) {
  const url = `${rig.edge.url}${path}`
  // A 304 has no signature: what a cache keeps once it got one is looked at.
  const isKept = found.status === 304
  t.equal('signature' in found.headers, !isKept)
  const shown = isKept ? freshened(await askAt(rig.edge.url, path, method), found) : found
  const exchange = { method, url, status: shown.status, fields: shown.fields }
  t.ok(await verifiedByFirst(exchange), `${method} ${path}: it verifies`)
  t.ok(await verifiedBySecond(exchange), `${method} ${path}: by another program, too`)
  const right = await askAt(rig.edge.stepwiseUrl, path, method, headers)
  t.equal(comparable(found), comparable(right))
  if (createdOf(right) === createdOf(found)) t.equal(all(found), all(right))
}

// Both wait for the same time.
t.jobs = 2
for (const bindRequest of [true, false])
  t.test(`what is too old is signed anew, bound ${bindRequest}`, { skip, buffered: true }, async (t) => {
    const rig = await cachingRig(1, { bindRequest })
    const id = await rig.put(Buffer.from('signed '.repeat(100)), {
      height: 90,
      header: headerWith(
        ['App-Name', 'a'],
        ['Content-Type', 'text/plain'],
        ['Empty', ''],
        ['Two Words', ' b  c '],
      ),
    })
    const tag = (await rig.edge.ask(`/${id}`)).headers.etag ?? ''
    const wishes: Wish[] = [
      {},
      { method: 'HEAD' },
      { headers: { range: 'bytes=3-9' } },
      { headers: { 'if-none-match': tag } },
    ]
    for (const wish of wishes) await warm(rig, `/${id}`, wish)
    const seen = new Set<number>()
    for (let round = 0; round < 2; round += 1) {
      await signaturesAreOld()
      for (const wish of wishes) {
        const before = rig.fromCache()
        const startedMs = Date.now()
        let found = await rig.edge.ask(`/${id}`, wish)
        // Once a second the steps look whether its bytes are still in memory.
        if (rig.fromCache() === before) found = await rig.edge.ask(`/${id}`, wish)
        t.ok(rig.fromCache() > before, `${JSON.stringify(wish)} is cached`)
        const tookSeconds = () => Math.ceil((Date.now() - startedMs) / 1000)
        await isAsSigned(t, rig, `/${id}`, wish, found)
        if (found.status === 304) continue
        t.ok(Math.abs(createdOf(found) - Date.now() / 1000) < 1.5 + tookSeconds())
        seen.add(createdOf(found))
        const next = await rig.edge.ask(`/${id}`, wish)
        t.ok(createdOf(next) - createdOf(found) <= tookSeconds(), 'none is made before it is too old')
      }
    }
    t.ok(seen.size >= 2)
    await rig.close()
  })

t.test('HEAD is answered by what is known of GET, with a signature of its own', { skip }, async (t) => {
  const rig = await cachingRig()
  const id = await rig.put(Buffer.from('headed '.repeat(100)), { header: headerWith(['A', 'b']) })
  for (const path of [`/${id}`, `/raw/${id}`]) {
    await warm(rig, path)
    for (const headers of [{}, { 'if-none-match': (await rig.edge.ask(path)).headers.etag ?? '' }]) {
      await warm(rig, path, { headers })
      const wish = { method: 'HEAD', headers }
      let found: Answered | undefined
      t.ok(
        await isFromCache(rig, async () => {
          found = await rig.edge.ask(path, wish)
        }),
        'the first HEAD of all',
      )
      if (found === undefined) throw new Error('no answer')
      await isAsSigned(t, rig, path, wish, found)
      t.equal(found.body.length, 0)
      t.equal(all(await rig.edge.ask(path, wish)), all(found), 'and so is the second')
      const whole = await rig.edge.ask(path, { headers })
      await isAsSigned(t, rig, path, { headers }, whole)
    }
    const part = { method: 'HEAD', headers: { range: 'bytes=1-2' } }
    await warm(rig, path, { headers: part.headers })
    const before = rig.fromCache()
    t.equal((await rig.edge.ask(path, part)).status, 206)
    t.equal(rig.fromCache(), before, 'a part is for the steps')
  }
  await rig.edge.ask(`/${id}`, { method: 'HEAD' })
  rig.block('id', idBytes(id as Id))
  t.equal((await rig.edge.ask(`/${id}`, { method: 'HEAD' })).status, 451, 'a block counts for HEAD, too')
  await rig.close()
})

t.test('what the server cannot sign is signed by the steps', { skip }, async (t) => {
  const rig = await cachingRig()
  const id = await rig.put(Buffer.from('twice '.repeat(100)), { header: headerWith(['A', 'b'], ['A', 'c']) })
  await warm(rig, `/${id}`)
  const before = rig.fromCache()
  const found = await rig.edge.ask(`/${id}`, { method: 'HEAD' })
  t.equal(rig.fromCache(), before, 'lines of one name are one component')
  await isAsSigned(t, rig, `/${id}`, { method: 'HEAD' }, found)
  t.ok(await isFromCache(rig, () => rig.edge.ask(`/${id}`)), 'GET stays')
  t.ok(
    await isFromCache(rig, () => rig.edge.ask(`/${id}`, { method: 'HEAD' })),
    'and HEAD is cached from now on',
  )
  await rig.close()
})

t.test(
  'the steps hear of a file once a signature, because it is noted as in use there',
  { skip },
  async (t) => {
    const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 64, believeMs: 400 }, systemClock)
    let path = ''
    const blobs = { path: () => path, open: (from: string) => files.open(from) }
    const edge = await stage({ parts: { blobs } })
    const rig = { edge, fromCache: () => edge.meters.value('answers_repeated_total', {}) } as Rig
    const id = someId()
    path = await edge.keep(id, Buffer.alloc(3_000_000, 'file '))
    const wish = { headers: { range: 'bytes=0-9' } }
    await edge.ask(`/${id}`, wish)
    await signaturesAreOld()
    const before = rig.fromCache()
    await edge.ask(`/${id}`, wish)
    t.equal(rig.fromCache(), before)
    await edge.close()
    files.close()
  },
)
