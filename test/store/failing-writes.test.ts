/** A database whose disk refuses writes and flushes in the middle of a change: it is undone, and the database goes on. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { faultyDisk } from '../disk/faults.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'

const child = fileURLToPath(new URL('failing-writes-child.js', import.meta.url))
// Without the addon LMDB's own message may damage memory.
const isTwin = process.execArgv.includes('--conditions=twin')
const skip = isTwin && 'the addon is not loaded'

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

for (const [kind, fault] of cases) {
  t.test(`${kind}: changes are undone where the disk says ${fault}`, { skip }, async (t) => {
    const [folder, beside] = [folderOf(t), scratch('faults')]
    const disk = faultyDisk(folder, beside)
    if (typeof disk === 'string') return t.comment(disk)
    t.teardown(() => disk.close())
    const seed = Math.floor(random() * 2 ** 31)
    disk.set({ oneOf: 0, seed, fault, kinds: ['write', 'sync'] })
    const tables = join(folder, 'tables')
    mkdirSync(tables)
    const { NODE_OPTIONS: _, ...own } = process.env
    const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
    const run = spawnSync(process.execPath, [...conditions, child, tables, kind, String(seed)], {
      encoding: 'utf8',
      env: { ...own, ...disk.environment },
    })
    const { status, signal } = run
    if (status !== 0) t.comment(run.stderr.slice(-500))
    t.strictSame({ status, signal }, { status: 0, signal: null })
    const wanted = { written: true, refused: true, codes: [fault], lost: 0, fault: 'none' }
    t.strictSame(JSON.parse(run.stdout), wanted)
  })
}
