import { randomBytes } from 'node:crypto'
import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import type { Repeats } from '../../src/admission/protocol.js'
import { Guard } from '../../src/gateway/guard.js'
import type { BlockList } from '../../src/moderation/protocol.js'
import { someId } from '../source/rig.js'
import { caller, type Got, repeated, untilRepeated } from './repeated.js'
import { stage } from './rig.js'

const skip = servedBy === 'twin' && 'the addon was not built: no answer stands'

/** What two answers to one request may not have in common. */
function comparable({ status, headers, body }: Got): object {
  const { date, signature, 'signature-input': input, 'x-request-id': id, ...rest } = headers
  const words = (input ?? '').replace(/created=\d+/, 'created=0')
  return {
    status,
    rest,
    words,
    body: body.toString('hex'),
    hasId: id?.length,
    hasDate: date !== undefined && signature !== undefined,
  }
}

t.test('an answer that is repeated is the answer that is made', { skip }, async (t) => {
  const on = await stage()
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(40_000)
  await on.keep(id, body)
  const ask = caller(t, on)
  await ask(`/${id}`)
  const { etag = '' } = (await ask(`/${id}`)).headers
  const wishes = [
    {},
    { method: 'HEAD' },
    { headers: { 'if-none-match': etag } },
    { headers: { range: 'bytes=5-104' } },
    { headers: { range: 'bytes=5-104', 'if-range': etag } },
    { headers: { range: 'bytes=5-104', 'if-range': '"other"' } },
    { headers: { range: 'bytes=5-104', 'if-none-match': etag } },
    { headers: { range: 'bytes=39990-50000' } },
    { headers: { range: 'bytes=0-0,5-9' } },
    { headers: { 'if-match': '"other"' } },
    { method: 'HEAD', headers: { range: 'bytes=5-104' } },
  ]
  for (const wish of wishes) {
    const made = await on.ask(`/${id}`, wish)
    for (let turn = 0; turn < 6; turn += 1) {
      const got = comparable(await ask(`/${id}`, wish))
      // A connection of its own says so in its answer.
      const { connection: _, ...headers } = made.headers
      const { rest, ...more } = comparable({ ...made, headers }) as { rest: object }
      t.match(got, { rest, ...more }, JSON.stringify(wish))
    }
  }
  await untilRepeated(on, () => ask(`/${id}`))
  await untilRepeated(on, () => ask(`/raw/${id}`, { method: 'HEAD' }))
  await untilRepeated(on, () => ask(`/raw/${id}`, { headers: { range: 'bytes=5-104' } }))
  let before = repeated(on)
  for (let turn = 0; turn < 5; turn += 1) {
    const { headers } = await ask(`/${id}`, { headers: { 'x-request-id': 'mine' } })
    t.equal(headers['x-request-id'], 'mine')
  }
  t.equal(repeated(on), before, 'who names a request hears the name')
  const large = someId()
  const largest = randomBytes(2 ** 20 + 1)
  await on.keep(large, largest)
  before = repeated(on)
  for (let turn = 0; turn < 5; turn += 1) t.ok((await ask(`/${large}`)).body.equals(largest))
  t.equal(repeated(on), before, 'larger bodies are moved piece by piece')
  const part = { headers: { range: `bytes=1-${2 ** 20}` } }
  t.ok((await untilRepeated(on, () => ask(`/${large}`, part))).body.equals(largest.subarray(1)))
})

t.test('what becomes blocked, or better known, is so at the very next request', { skip }, async (t) => {
  let version = 1
  const blocked = new Set<string>()
  const list: BlockList = {
    get version() {
      return version
    },
    ...{ isReadable: true, mayBlockContent: true },
    blocksId: (id) => blocked.has(id),
    ...{ blocksDigest: () => false, blocksName: () => false },
  }
  const on = await stage({ parts: { guard: new Guard(list, { attributes: () => undefined }, 100) } })
  t.teardown(() => on.close())
  const id = someId()
  const body = randomBytes(1000)
  await on.keep(id, body, { verified: false })
  const ask = caller(t, on)
  for (let turn = 0; turn < 5; turn += 1) {
    t.equal((await untilRepeated(on, () => ask(`/${id}`))).status, 200)
    blocked.add(id)
    version += 1
    t.equal((await ask(`/${id}`)).status, 451)
    blocked.delete(id)
    version += 1
    t.equal((await ask(`/${id}`)).status, 200)
  }
  t.equal((await untilRepeated(on, () => ask(`/${id}`))).headers['x-gateway-verified'], 'false')
  await on.keep(id, body, { verified: true })
  t.equal((await ask(`/${id}`)).headers['x-gateway-verified'], 'true')
})

t.test('each repeated answer is paid for, and none goes out that is not', { skip }, async (t) => {
  let tokens = Number.POSITIVE_INFINITY
  let made = 0
  const repeats: Repeats = {
    admit(address, bytes, count) {
      t.equal(address, '127.0.0.1')
      t.equal(bytes, 1000)
      if (tokens < count) return undefined
      tokens -= count
      return { short: () => undefined }
    },
  }
  const denial = {
    status: 429,
    contentType: 'text/plain',
    lines: '',
    body: 'too much',
    reason: 'ip',
  } as const
  const on = await stage({
    parts: {
      admission: {
        knock: () => true,
        passes: () => 0,
        repeats: () => repeats,
        admit() {
          if (tokens < 1) return denial
          tokens -= 1
          made += 1
          return { lines: '', settle: () => undefined }
        },
      },
    },
  })
  t.teardown(() => on.close())
  const id = someId()
  await on.keep(id, randomBytes(1000))
  const ask = caller(t, on)
  await untilRepeated(on, () => ask(`/${id}`))
  tokens = 30
  made = 0
  const before = repeated(on)
  let good = 0
  let bad = 0
  for (let turn = 0; turn < 100; turn += 1) {
    const { status } = await ask(`/${id}`)
    if (status === 200) good += 1
    else if (status === 429) bad += 1
  }
  t.equal(good, 30)
  t.equal(bad, 70)
  t.equal(made + repeated(on) - before, 30)
})
