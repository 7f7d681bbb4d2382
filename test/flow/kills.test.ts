import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause } from '../../src/actor/clock.js'
import { type Id, idBytes, idOfBytes, parseId } from '../../src/format/id.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { upstream } from '../source/rig.js'
import { payloadOf } from '../store/segments/rig.js'
import { type Running, run } from './running.js'

/** Kills of the whole program; many of them with KILLS=300. */
const kills = Number(process.env.KILLS ?? 2)
t.setTimeout(1_200_000 + kills * 60_000)

/** What the gateway behind it has under an id: the id says its size and bytes. */
function contentOf(id: Id): Buffer {
  const [kind = 0, low = 0, high = 0, ...seed] = idBytes(id)
  const sizeBytes = kind < 8 ? 1_500_000 + low : 1 + ((low * 256 + high) % 40_000)
  return payloadOf(sizeBytes, Buffer.from(seed).readUInt32LE(0))
}

/** Accepted items that are looked for after each kill; all of them are at the end. */
const checkedMax = 300

const signer = ed25519Signer(randomBytes(32))

/** Whether all of it was answered. A wrong byte ends the test. */
async function got(url: string, id: Id, wanted: Buffer): Promise<boolean> {
  let answer: Response
  let body: Buffer
  try {
    answer = await fetch(`${url}/${id}`)
    body = Buffer.from(await answer.arrayBuffer())
  } catch {
    return false // it was killed meanwhile
  }
  if (answer.status !== 200) return false
  if (!body.equals(wanted)) throw new Error(`wrong bytes of ${id}`)
  return true
}

/** One byte of what lies on disk changes, or a segment is gone: what is lost so is fetched again. */
function hurt(dataPath: string): void {
  const folder = join(dataPath, 'segments')
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.segment')) : []
  const name = names[Math.floor(random() * names.length)]
  if (name === undefined) return
  const path = join(folder, name)
  if (random() < 0.3) {
    rmSync(path)
    return
  }
  const file = openSync(path, 'r+')
  // Most of a segment is room that is not used yet.
  const usedBytes = Math.min(statSync(path).size, 4 * 2 ** 20)
  const byte = Buffer.alloc(1)
  for (let flips = 0; flips < 50; flips += 1) {
    const at = Math.floor(random() * usedBytes)
    readSync(file, byte, 0, 1, at)
    byte[0] = (byte[0] ?? 0) ^ (1 << Math.floor(random() * 8))
    writeSync(file, byte, 0, 1, at)
  }
  closeSync(file)
}

t.test('killed at any moment under load, it gives no wrong byte and loses nothing accepted', async (t) => {
  const server = await upstream((request, response) => {
    const id = parseId(request.url?.replace('/raw/', '') ?? '')
    if (id === undefined) return void response.writeHead(404).end()
    const body = contentOf(id)
    response.writeHead(200, { 'content-length': body.length, 'content-type': 'application/octet-stream' })
    response.end(body)
  })
  t.teardown(() => server.close())
  const dataPath = scratch('kills')
  const environment = {
    SERVICES: 'gateway,upload',
    UPLOAD_FREE_ITEM_BYTES: '1000000',
    // One wallet signs all that many kills leave time for.
    UPLOAD_FREE_WALLET_BYTES: String(2 ** 40),
    TRUSTED_GATEWAYS_URLS: JSON.stringify({ [server.url]: 1 }),
    // Small, so that segments come and go.
    CONTIGUOUS_DATA_CACHE_MAX_BYTES: String(256 * 2 ** 20),
    CONTENT_SEGMENT_BYTES: String(8 * 2 ** 20),
  }
  const anyId = (): Id => idOfBytes(randomBytes(32))
  const hot = Array.from({ length: 40 }, anyId)
  const accepted: { readonly id: Id; readonly payload: Buffer }[] = []
  const startsMs: number[] = []
  let answered = 0

  const start = async (): Promise<Running> => {
    const from = performance.now()
    const program = await run(t, dataPath, environment)
    startsMs.push(performance.now() - from)
    return program
  }
  const accept = async (url: string): Promise<void> => {
    const payload = payloadOf(1000 + Math.floor(random() * 3000), Math.floor(random() * 2 ** 31))
    const bytes = signItem(signer, { anchor: randomBytes(32) }, payload)
    const header = parseItemHeader(bytes)
    if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
    try {
      const receipt = await fetch(`${url}/tx`, {
        method: 'POST',
        body: bytes,
        headers: { 'content-type': 'application/octet-stream' },
      })
      if (receipt.status === 200 && (await receipt.text()).includes(header.id))
        accepted.push({ id: header.id, payload })
    } catch {
      // It was killed meanwhile: nobody was promised anything.
    }
  }
  const load = async ({ urls }: Running, isOver: () => boolean): Promise<Id[]> => {
    const { gateway = '', upload = '' } = urls
    const cold: Id[] = []
    const reads = Array.from({ length: 8 }, async () => {
      while (!isOver()) {
        const id = random() < 0.5 ? hot[Math.floor(random() * hot.length)] : anyId()
        if (id === undefined || !(await got(gateway, id, contentOf(id)))) continue
        answered += 1
        cold.push(id)
      }
    })
    const writes = Array.from({ length: 2 }, async () => {
      while (!isOver()) await accept(upload)
    })
    await Promise.all([...reads, ...writes])
    return cold
  }

  const allThere = async (url: string, items: typeof accepted): Promise<void> => {
    for (const { id, payload } of items)
      if (!(await got(url, id, payload))) throw new Error(`${id} was accepted and is lost`)
  }

  let program = await start()
  for (let round = 0; round < kills; round += 1) {
    let isOver = false
    const loading = load(program, () => isOver)
    const before = { answered, accepted: accepted.length }
    await eventually(
      'more answers and another upload',
      () => answered > before.answered + 10 && accepted.length > before.accepted,
    )
    await pause(random() * 1500)
    await program.kill()
    isOver = true
    const read = await loading
    if (round % 2 === 1) hurt(dataPath)
    program = await start()
    const { gateway = '' } = program.urls
    await allThere(gateway, accepted.slice(-checkedMax))
    for (const id of [...hot, ...read.slice(-50)]) t.ok(await got(gateway, id, contentOf(id)))
  }
  await allThere(program.urls.gateway ?? '', accepted)
  t.equal(await program.stop(), 0)
  t.ok(answered > 0)
  startsMs.sort((one, other) => one - other)
  const at = (share: number): string =>
    ((startsMs[Math.floor((startsMs.length - 1) * share)] ?? 0) / 1000).toFixed(2)
  t.comment(
    `${kills} kills, ${answered} answers, ${accepted.length} accepted; starts: median ${at(0.5)} s, longest ${at(1)} s`,
  )
})
