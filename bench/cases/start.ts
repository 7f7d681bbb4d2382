import { createHash, randomFillSync } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { idOfBytes } from '../../src/format/id.js'
import { Seeding } from '../corpus/seed.js'
import { diskMb, emptyFolder } from '../kit/folders.js'
import { readyProgram, startProgram } from '../kit/started.js'
import { residentMb, Stopwatch } from '../kit/usage.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import { type Group, type Order, rowOf, runCase } from './run.js'

const bytes = randomFillSync(Buffer.alloc(440))

function payload(at: number): { readonly digest: Buffer; readonly bytes: Buffer } {
  bytes.writeUInt32LE(at)
  return { digest: createHash('sha256').update(bytes).digest(), bytes }
}

/** Puts `objects` small contents with their records into a data folder, and `records` payloads that no record names. */
export async function fillWithObjects(folder: string, objects: number, records: number): Promise<void> {
  const seeding = new Seeding(folder)
  for (let at = 0; at < objects; at += 1) {
    const { digest } = payload(at)
    const id = idOfBytes(createHash('sha256').update(digest).digest())
    await seeding.content({ id, size: bytes.length, contentType: 'text/plain', digest }, bytes)
  }
  for (let at = 0; at < records; at += 1) {
    seeding.payload(payload(objects + at).digest, bytes)
    if (at % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  await seeding.close()
}

/** How long a start took, its processor time, and the own memory of the program then (MiB). */
export interface StartCost {
  readonly ms: number
  readonly cpuMs: number
  readonly ownMb: number
}

/** Starts the program on a data folder, waits for its line `ready`, and kills it. */
export async function timedStart(folder: string): Promise<StartCost> {
  const from = performance.now()
  const wallet = new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url).pathname
  const child = startProgram(folder, { UPLOAD_WALLET_FILE: wallet })
  const watch = new Stopwatch(child.pid ?? 0)
  const exited = once(child, 'exit')
  await readyProgram(child)
  const found = {
    ms: performance.now() - from,
    cpuMs: watch.seconds() * 1000,
    ownMb: residentMb(child.pid ?? 0).own,
  }
  child.kill('SIGKILL')
  await exited
  return found
}

const words: CaseWords = {
  name: 'start after a kill',
  group: 'start',
  about:
    'a start with many small contents in catalog and segments after kill -9, and memory for each beyond a start with few',
  cost: 'startMs',
  most: { startMs: 2000, ownBytesEach: 100 },
}

/** Starts `rounds` times on a folder, after one start that makes keys. */
async function starts(folder: string, rounds: number): Promise<StartCost[]> {
  await timedStart(folder)
  const found: StartCost[] = []
  for (let round = 0; round < rounds; round += 1) found.push(await timedStart(folder))
  return found
}

async function measure({ scale, rounds, note }: Order): Promise<readonly Row[]> {
  const times = scale.judges ? Math.max(3, rounds) : 1
  const folders = [emptyFolder('start-few'), emptyFolder('start-many')] as const
  try {
    const [few, many] = folders
    await fillWithObjects(few, Math.min(1000, scale.startObjects / 2), 0)
    note(`start: ${scale.startObjects} contents are put onto the disk`)
    await fillWithObjects(many, scale.startObjects, 0)
    const least = Math.min(...(await starts(few, times)).map(({ ownMb }) => ownMb))
    const bytesEach = (diskMb(many) * 2 ** 20) / scale.startObjects
    const costs = (await starts(many, times)).map(({ ms, cpuMs: spent, ownMb }): Metrics => {
      const ownBytesEach = ((ownMb - least) * 2 ** 20) / scale.startObjects
      return { startMs: ms, startCpuMs: spent, ownMb, ownBytesEach: Math.max(0, ownBytesEach), bytesEach }
    })
    return [rowOf({ name: 'sluice', role: 'ours' }, costs, words.cost)]
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}

export const startGroup: Group = {
  name: 'start',
  cases: [words],
  run(order) {
    const notes = [`${order.scale.startObjects} contents of ${bytes.length} bytes`]
    return runCase(order, { ...words, notes }, () => measure(order))
  },
}
