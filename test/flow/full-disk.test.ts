/**
 * A disk of 300 MB: a new devnet starts there, and caches content. Full for some time, it refuses uploads and payments in plain
 * words; all goes on without a start.
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { fillDisk } from '../fill-disk.js'
import { random } from '../property.js'
import { run, seeded } from './running.js'

const own = ['unshare', '--map-root-user', '--mount', 'sh', '-c'] as const
const mount = 'mount -t tmpfs -o size=300m none "$0"'
const [command, ...words] = own
const isAble = spawnSync(command, [...words, mount, t.testdir()]).status === 0
const skip = !isAble && 'nobody may mount a file system here'

const signer = ed25519Signer(Buffer.alloc(32, 31))
const itemOf = (bytes: number): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.alloc(bytes, `an item ${random()}`)))

t.test('uploads and payments are refused while it is full, and go on afterwards', { skip }, async (t) => {
  const folder = t.testdir()
  const settings = {
    ...seeded,
    DEVNET_BLOCK_MS: '300',
    UPLOAD_DISK_MIN_BYTES: '0',
    UPLOAD_FREE_ITEM_BYTES: '9000000',
    UPLOAD_FREE_WALLET_BYTES: '90000000',
  }
  const program = await run(t, folder, settings, [], [...own, `${mount} && exec "$@"`, folder])
  const { upload = '', gateway = '', payment = '' } = program.urls
  const image = await fetch(`${gateway}/raw/${program.examples.image}`)
  t.equal(image.headers.get('x-cache'), 'HIT', 'an example is in the cache')
  t.ok(program.log.some(({ msg }) => msg === 'room on the disk of DATA_PATH'))
  const post = (path: string, body?: Uint8Array, headers = {}): Promise<Response> =>
    fetch(upload + path, { method: 'POST', headers, ...(body === undefined ? {} : { body }) })
  const begin = async (): Promise<string> => {
    const begun = await fetch(`${upload}/chunks/any/-1/-1`)
    return ((await begun.json()) as { id: string }).id
  }
  const before = (await (await post('/tx', itemOf(1000))).json()) as { id: string }
  const [empty, whole] = [await begin(), await begin()]
  t.equal((await post(`/chunks/any/${whole}/0`, itemOf(2_000_000))).status, 200)

  // Its file system is its own: this is the way in from outside.
  const filler = join(`/proc/${program.process.pid}/root`, folder, 'filler')
  fillDisk(filler)
  const last = { 'upload-complete': '?1', 'upload-draft-interop-version': '6' }
  const requests: readonly (readonly [string, () => Promise<Response>])[] = [
    ['a small item', () => post('/tx', itemOf(1000))],
    ['a large item', () => post('/tx', itemOf(8_000_000))],
    ['bytes to be signed', () => post('/x402/upload/unsigned', Buffer.alloc(5000))],
    ['an item to be paid for', () => post('/x402/upload/signed', itemOf(5000))],
    ['a new upload in parts', () => fetch(`${upload}/chunks/any/-1/-1`)],
    ['a part', () => post(`/chunks/any/${empty}/0`, itemOf(1000))],
    ['the end of an upload in parts', () => post(`/chunks/any/${whole}/-1`)],
    ['its end without waiting', () => post(`/chunks/any/${whole}/finalize`)],
    ['an upload that can be resumed', () => post('/upload', itemOf(1000), last)],
  ]
  for (const [what, ask] of requests) {
    const answer = await ask()
    t.equal(answer.status, 503, what)
    t.match(await answer.text(), /disk .* full/, what)
    t.ok(answer.headers.has('retry-after'), what)
  }
  t.equal((await fetch(`${gateway}/raw/${before.id}`)).status, 200, 'what is here is served meanwhile')
  const buy = (): Promise<Response> =>
    fetch(`${payment}/v1/top-up/checkout-session/${'a'.repeat(43)}/usd/1000`)
  const refused = await buy()
  t.equal(refused.status, 503)
  t.match(await refused.text(), 'the disk is full')
  const unwell = await fetch(`${gateway}/gateway/healthcheck`)
  t.equal(unwell.status, 503)
  t.match(await unwell.text(), /the disk of DATA_PATH .* payments are refused/)
  rmSync(filler)

  await eventually('uploads are accepted again', async () => (await post('/tx', itemOf(1000))).status === 200)
  t.equal((await buy()).status, 200)
  t.equal((await post(`/chunks/any/${empty}/0`, itemOf(1000))).status, 200)
  t.equal((await post(`/chunks/any/${whole}/-1`)).status, 200, 'what was here of an upload is not lost')
  await eventually('the earlier upload is permanent', async () => {
    const statusAnswer = await fetch(`${upload}/tx/${before.id}/status`)
    return ((await statusAnswer.json()) as { status: string }).status === 'FINALIZED'
  })
  t.equal(await program.stop(), 0)
  t.strictSame(program.noise, [], 'nothing but the log')
})
