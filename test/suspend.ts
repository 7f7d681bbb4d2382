import type { ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { eventually } from './eventually.js'

/**
 * Stops a program of one process by SIGSTOP. Resolves when every thread of it stands: `kill` returns earlier, so that without
 * this a program might still answer on a busy machine. SIGCONT lets it run again.
 */
export async function suspend(child: ChildProcess): Promise<void> {
  const tasks = `/proc/${child.pid}/task`
  child.kill('SIGSTOP')
  await eventually('every thread is stopped', () =>
    readdirSync(tasks).every((thread) => stateOf(`${tasks}/${thread}/stat`) === 'T'),
  )
}

/** The third field (proc_pid_stat(5)); the second one stands in parentheses and may contain blanks. */
function stateOf(path: string): string | undefined {
  const text = readFileSync(path, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2, text.lastIndexOf(')') + 3)
}
