/** Accepted items wait for a disk that is full, and are written down when it is not: the program goes on meanwhile. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const child = fileURLToPath(new URL('full-disk-child.js', import.meta.url))
const count = 600
const skip = spawnSync('prlimit', ['--version']).error !== undefined && 'prlimit is not installed'

t.test('what was accepted is written down when the disk takes it again', { skip }, async (t) => {
  // The file may not become larger: to a program it is a full disk, where it hears an error and no signal.
  const script = `trap '' XFSZ; ulimit -S -f 200; exec "$0" "$@"`
  const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
  const words = [process.execPath, ...conditions, child, join(t.testdir(), 'tables'), String(count)]
  const running = spawn('bash', ['-c', script, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(running, 'exit')
  t.teardown(() => running.kill('SIGKILL'))
  const lines: string[] = []
  for await (const line of createInterface({ input: running.stdout })) {
    lines.push(line)
    if (line === 'waits') spawnSync('prlimit', ['--pid', String(running.pid), '--fsize=unlimited'])
  }
  t.strictSame(lines, ['waits', 'goes on', `kept ${count}`])
  t.strictSame(await ended, [0, null])
})
