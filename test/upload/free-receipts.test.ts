/** Receipts take processor time: free items have turns to be signed, and paid ones do not wait for them. */
import t, { type Test } from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { eventually } from '../eventually.js'
import { answered, requestOf, type UploadRig, uploadRig } from './upload-rig.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
let made = 0

interface Scene {
  readonly rig: UploadRig
  /** Free receipts that are being signed. */
  readonly begun: () => number
  /** Signs them, and those that come. */
  readonly go: () => void
  post(from: string, bytes?: number): Promise<UploadAnswer>
}

/** Paid receipts are signed at once, free ones when the test says so. One thread signs: eight have turns, and four may wait. */
async function sceneOf(t: Test): Promise<Scene> {
  const environment = openUploadTables(t.testdir())
  t.teardown(() => environment.close())
  // Timers of the system's clock keep no process alive.
  const awake = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(awake))
  let begun = 0
  let go = (): void => undefined
  const going = new Promise<void>((resolve) => {
    go = resolve
  })
  const sign = async (rank: 'paid' | 'free'): Promise<void> => {
    if (rank === 'paid') return
    begun += 1
    await going
  }
  const rig = await uploadRig(t, environment, { isRich: true, sign, turns: { threads: 1, requestsMax: 32 } })
  const post = (from: string, bytes = 100): Promise<UploadAnswer> => {
    const item = signItem(signer, {}, Buffer.alloc(bytes, `item ${made++} `))
    const headers = { 'content-length': String(item.length) }
    const pieces = [item.subarray(0, 150), item.subarray(150)]
    return answered(rig, '/tx', requestOf('POST', '/tx', { from, headers, pieces }))
  }
  return { rig, begun: () => begun, go, post }
}

t.test('free items beyond a line are refused, and paid ones have their receipts at once', async (t) => {
  const { rig, begun, go, post } = await sceneOf(t)
  const crowd = Array.from({ length: 12 }, () => post('198.51.100.7'))
  await eventually('eight are being signed', () => begun() === 8)
  t.match(await post('198.51.100.7'), { status: 503, lines: /Retry-After/ })
  const item = signItem(signer, {}, Buffer.alloc(50_000, 'late'))
  function* pieces(): Generator<Uint8Array> {
    for (let at = 0; at < item.length; at += 1000) yield item.subarray(at, at + 1000)
  }
  const headers = { 'content-length': String(item.length) }
  const late = requestOf('POST', '/tx', { from: '198.51.100.7', headers, pieces: pieces() })
  t.match(await answered(rig, '/tx', late), { status: 503 })
  t.ok(late.taken() < 2000, 'its bytes are not read')
  t.match(await post('198.51.100.7', 200_000), { status: 200 }, 'a paid item has its receipt')
  go()
  for (const answer of await Promise.all(crowd)) t.equal(answer.status, 200)
})

t.test('who has most in the line makes room for a newcomer, and has its free bytes back', async (t) => {
  const { rig, begun, go, post } = await sceneOf(t)
  const crowd = Array.from({ length: 12 }, () => post('198.51.100.7'))
  await eventually('eight are being signed', () => begun() === 8)
  const left = rig.pools.leftOfRange('198.51.100.7')
  const newcomer = post('203.0.113.1')
  const dropped = await Promise.race(crowd)
  t.match(dropped, { status: 503 })
  t.ok(Number(rig.pools.leftOfRange('198.51.100.7')) > Number(left))
  go()
  t.match(await newcomer, { status: 200 })
  const statuses = (await Promise.all(crowd)).map(({ status }) => status)
  t.equal(statuses.filter((status) => status === 200).length, 11)
})

t.test(
  'who waits for too long is told to come again, and an item that is posted again has a turn, too',
  async (t) => {
    const { begun, go, post, rig } = await sceneOf(t)
    const item = signItem(signer, {}, Buffer.alloc(200_000, 'twice'))
    const again = (): Promise<UploadAnswer> =>
      answered(rig, '/tx', requestOf('POST', '/tx', { from: '203.0.113.1', pieces: [item] }))
    t.match(await again(), { status: 200 }, 'it is paid for')
    const crowd = Array.from({ length: 8 }, () => post('198.51.100.7'))
    await eventually('eight are being signed', () => begun() === 8)
    const tookMs = async (count: number): Promise<number> => {
      const startedMs = performance.now()
      const answers = await Promise.all(Array.from({ length: count }, again))
      for (const answer of answers) t.match(answer, { status: 503, lines: /Retry-After/ })
      return performance.now() - startedMs
    }
    const aloneMs = await tookMs(1)
    t.ok((await tookMs(4)) < 3 * aloneMs, 'each for its own two seconds, not for those of the others')
    go()
    for (const answer of await Promise.all(crowd)) t.equal(answer.status, 200)
    t.match(await again(), { status: 202 })
  },
)
