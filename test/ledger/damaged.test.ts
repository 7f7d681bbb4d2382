/** A data file that was cut off, or has changed bits: the ledger is not opened, its check says so, or all answers are right. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { headKey } from '../../src/ledger/head-key.js'
import type { TransferOrder } from '../../src/ledger/transfer.js'
import { below } from '../property.js'
import type { Looked } from './damaged-child.js'

const child = fileURLToPath(new URL('damaged-child.js', import.meta.url))
/** Of each kind; LEDGER_DAMAGES asks for more. */
const damages = Number(process.env.LEDGER_DAMAGES ?? 25)
const facts = { reason: 'test', reference: 'r' }

/** A ledger with something in every table, and something that is in none of them yet. */
async function written(path: string, keyPath: string): Promise<void> {
  let nowMs = 1_000_000
  const clock: Clock = { ...systemClock, now: () => nowMs, monotonic: () => nowMs }
  const ledger = new EmbeddedLedger({ path, clock, key: headKey(keyPath), deferredMax: 64 })
  for (let at = 0; at < 90; at += 1) {
    nowMs += 10
    const wallet = `wallet:${at % 7}`
    const top = { id: `t${at}`, kind: 'posted', debit: 'source:t', credit: wallet, amount: 100n } as const
    const hold = { id: `h${at}`, kind: 'pending', debit: wallet, credit: 'revenue', amount: 9n } as const
    const transfers: TransferOrder[] = [
      { ...top, ...facts },
      { ...hold, ...facts, ...(at % 3 === 0 ? { timeoutMs: 100_000 } : {}) },
    ]
    const end = at % 2 === 0 ? 'post' : 'void'
    if (at % 5 > 0 && at > 5)
      transfers.push({ id: `e${at}`, kind: end, pending: `h${at - (at % 2)}`, ...facts })
    const records = [
      { kind: 'k', key: `${at % 40}`, value: `{"at":${at}}` },
      { kind: 'list', key: `${at % 50}`, value: at % 6 === 0 ? undefined : `"${at}"` },
    ]
    await ledger.commit({ transfers, records })
    if (at % 30 === 0) await ledger.signHead()
  }
  await ledger.close()
}

t.test(`a ledger's file is damaged in ${2 * damages} ways`, async (t) => {
  const root = t.testdir()
  const keyPath = join(root, 'key.pem')
  await written(join(root, 'sound'), keyPath)
  const sound = readFileSync(join(root, 'sound', 'data.mdb'))
  const spoilt = (name: string, bytes: Uint8Array): string => {
    const path = join(root, name)
    mkdirSync(path)
    writeFileSync(join(path, 'data.mdb'), bytes)
    return path
  }
  const ways: string[] = []
  const paths = [spoilt('as it was', sound)]
  for (let at = 0; at < damages; at += 1) {
    const size = 1 + below(sound.length - 1)
    paths.push(spoilt(`cut-${at}`, sound.subarray(0, size)))
    ways.push(`cut to ${size} of ${sound.length} bytes`)
    const flipped = Buffer.from(sound)
    const [byte, bit] = [below(sound.length), below(8)]
    flipped[byte] = (flipped[byte] ?? 0) ^ (1 << bit)
    paths.push(spoilt(`flipped-${at}`, flipped))
    ways.push(`bit ${bit} of byte ${byte}`)
  }
  const { stdout, status, signal } = spawnSync(
    process.execPath,
    [...process.execArgv, child, keyPath, ...paths],
    {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const looked = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Looked]))
  t.strictSame([status, signal], [0, null], `it looked at all; after ${ways[looked.length - 2] ?? 'none'}`)
  const [first, ...others] = looked
  t.strictSame(first?.faults, [])
  t.equal(others.length, ways.length)
  let seen = 0
  for (const [at, { faults, answers, refused }] of others.entries()) {
    const isSeen = refused !== undefined || faults.length > 0
    if (isSeen) seen += 1
    if (!isSeen) t.equal(answers, first?.answers, ways[at] ?? '')
    if (refused !== undefined) t.match(refused, /is broken: .*OPERATING\.md/)
  }
  t.ok(seen > 0, `${seen} of ${ways.length} were seen`)
})

for (const [way, message] of [
  ['cut', 'was cut off while it was open'],
  ['remove', 'was removed while it was open'],
  ['replace', 'was replaced while it was open'],
  ['none', ''],
] as const)
  t.test(`what happens to an open file: ${way}`, async (t) => {
    const program = fileURLToPath(new URL('cut-child.js', import.meta.url))
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, [program, way, t.testdir()])
    t.equal(signal, null, 'no signal ends it')
    t.equal(String(stdout), way === 'none' ? 'open\ncommitted\n' : 'open\nrefused\n')
    t.equal(status, way === 'none' ? 0 : 1)
    t.match(String(stderr), message)
    if (way !== 'none') t.match(String(stderr), 'See "A database is broken" in deploy/OPERATING.md')
  })
