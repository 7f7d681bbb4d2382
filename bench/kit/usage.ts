import { readdirSync, readFileSync } from 'node:fs'

/** The text of a file of /proc, '' where its process or thread has ended. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}

function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** A process and all that descend from it. */
export function family(pid: number): number[] {
  const children = tasksOf(pid).flatMap((task) =>
    readProc(`/proc/${pid}/task/${task}/children`)
      .split(' ')
      .filter((word) => word !== ''),
  )
  return [pid, ...children.flatMap((child) => family(Number(child)))]
}

/** Nanoseconds of processor time of each thread of a process and its descendants, by thread. */
function threadTimes(pid: number): Map<string, number> {
  const times = new Map<string, number>()
  for (const member of family(pid)) {
    for (const task of tasksOf(member)) {
      const [spent] = readProc(`/proc/${member}/task/${task}/schedstat`).split(' ')
      if (spent !== undefined && spent !== '') times.set(task, Number(spent))
    }
  }
  return times
}

/** The kernel's ticks of processor time (USER_HZ) are of a hundredth of a second on all processors that Linux runs on here. */
const tickNs = 1e7

/** Nanoseconds of processor time of a process with all its threads, also those that have ended; to a hundredth of a second. */
function processTime(pid: number): number {
  // proc_pid_stat(5): after the name in parentheses, user and system time are the 12th and 13th word.
  const words = readProc(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
  return (Number(words[11] ?? 0) + Number(words[12] ?? 0)) * tickNs
}

/** Nanoseconds of processor time of a program and its descendants, to the tick where threads have ended. */
function spentTime(pid: number): number {
  let living = 0
  for (const spent of threadTimes(pid).values()) living += spent
  // Ticks are counted down, so that this is below 0 where no thread has ended.
  const ended = family(pid).reduce((sum, member) => sum + processTime(member), 0) - living
  return living + Math.max(0, ended)
}

/** Seconds of processor time that each thread of a program has used so far, by its number. */
export function threadSeconds(pid: number): Map<string, number> {
  return new Map([...threadTimes(pid)].map(([task, nanoseconds]) => [task, nanoseconds / 1e9]))
}

/** Counts the processor time (user and system) of programs with all their threads and descendants from now on. */
export class Stopwatch {
  readonly #pids: readonly number[]
  readonly #before: number

  constructor(...pids: readonly number[]) {
    this.#pids = pids
    this.#before = this.#spent()
  }

  /** Seconds since the start; what threads used that ended meanwhile is counted to a hundredth of a second. */
  seconds(): number {
    return (this.#spent() - this.#before) / 1e9
  }

  #spent(): number {
    return this.#pids.reduce((sum, pid) => sum + spentTime(pid), 0)
  }
}

/** Resident memory of programs in MiB: all of it, and the part that is not a file's pages. */
export function residentMb(...pids: readonly number[]): { all: number; own: number } {
  const sum = { all: 0, own: 0 }
  for (const member of pids.flatMap(family)) {
    const status = readProc(`/proc/${member}/status`)
    const of = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
    sum.all += of('VmRSS')
    sum.own += of('RssAnon')
  }
  return sum
}
