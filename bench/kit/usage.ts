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
function family(pid: number): number[] {
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

/** Seconds of processor time that each thread of a program has used so far, by its number. */
export function threadSeconds(pid: number): Map<string, number> {
  return new Map([...threadTimes(pid)].map(([task, nanoseconds]) => [task, nanoseconds / 1e9]))
}

/** Counts the processor time (user and system) of a program with all its threads and descendants from now on. */
export class Stopwatch {
  readonly #before: Map<string, number>

  constructor(private readonly pid: number) {
    this.#before = threadTimes(pid)
  }

  /** Seconds since the start. What a thread used that began and ended meanwhile is not in it. */
  seconds(): number {
    let nanoseconds = 0
    for (const [task, spent] of threadTimes(this.pid)) nanoseconds += spent - (this.#before.get(task) ?? 0)
    return nanoseconds / 1e9
  }
}

/** Resident memory in MiB: all of it, and the part that is not a file's pages. */
export function residentMb(pid: number): { all: number; own: number } {
  const sum = { all: 0, own: 0 }
  for (const member of family(pid)) {
    const status = readProc(`/proc/${member}/status`)
    const of = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
    sum.all += of('VmRSS')
    sum.own += of('RssAnon')
  }
  return sum
}
