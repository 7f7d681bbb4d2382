/** A database whose disk refuses writes and flushes in the middle of a change: it is undone, and the database goes on. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type FaultWish, faultyDisk } from '../disk/faults.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'

const child = fileURLToPath(new URL('failing-writes-child.js', import.meta.url))
// Without the addon LMDB's own message may damage memory.
const isFallback = process.execArgv.includes('--conditions=fallback')
const skip = isFallback && 'the addon is not loaded'

/** In memory, where it can be had: what is tested is the refusal, and a real flush takes its time. */
function folderOf(t: Test): string {
  if (!existsSync('/dev/shm')) return scratch('failing-writes')
  const folder = mkdtempSync('/dev/shm/sluice-failing-writes-')
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

const cases = [
  ['durable', 'ENOSPC'],
  ['usual', 'EIO'],
] as const

/** Changes a database on a disk that fails so, in a process of its own, and compares what that says. */
async function changed(
  t: Test,
  words: readonly [kind: string, what: string],
  wish: FaultWish,
  wanted: object,
): Promise<void> {
  const [folder, beside] = [folderOf(t), scratch('faults')]
  const disk = faultyDisk(folder, beside)
  if (typeof disk === 'string') return t.comment(disk)
  t.teardown(() => disk.close())
  const seed = Math.floor(random() * 2 ** 31)
  disk.set({ seed, ...wish })
  const tables = join(folder, 'tables')
  mkdirSync(tables)
  const { NODE_OPTIONS: _, ...own } = process.env
  const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
  const [kind, what] = words
  const run = spawnSync(process.execPath, [...conditions, child, tables, kind, String(seed), what], {
    encoding: 'utf8',
    env: { ...own, ...disk.environment },
  })
  const { status, signal } = run
  if (status !== 0) t.comment(run.stderr.slice(-500))
  t.strictSame({ status, signal }, { status: 0, signal: null })
  t.strictSame(JSON.parse(run.stdout), { written: true, lost: 0, fault: 'none', ...wanted })
}

for (const [kind, fault] of cases) {
  t.test(`${kind}: changes are undone where the disk says ${fault}`, { skip }, async (t) => {
    const wish = { oneOf: 0, fault, kinds: ['write', 'sync'] } as const
    await changed(t, [kind, 'all'], wish, { refused: true, codes: [fault] })
  })
}

t.test('a refused update of the state waits for the disk, for however long', { skip }, async (t) => {
  // Tries follow each other without a rest: a thousand of them would take four minutes.
  const wish = { oneOf: 0, fault: 'EIO', kinds: ['write'], belowBytes: 1024, sleepless: true } as const
  await changed(t, ['usual', 'state'], wish, { refused: false, codes: [] })
})
