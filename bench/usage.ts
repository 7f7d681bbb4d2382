import { readdirSync, readFileSync } from 'node:fs'

/** Ticks of a second in /proc, on every Linux that Node runs on. */
const ticks = 100

function family(pid: number): number[] {
  const all = [pid]
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8')
      for (const child of children.split(' ').filter((word) => word !== ''))
        all.push(...family(Number(child)))
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error // it ended meanwhile
  }
  return all
}

/** Processor seconds that a process and its children have used so far. */
export function cpuSeconds(pid: number): number {
  let sum = 0
  for (const member of family(pid)) {
    const fields = readFileSync(`/proc/${member}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    sum += (Number(fields[11]) + Number(fields[12])) / ticks
  }
  return sum
}

/** Resident memory in MiB: all of it, and the part that is not a file's pages. */
export function residentMb(pid: number): { all: number; own: number } {
  const sum = { all: 0, own: 0 }
  for (const member of family(pid)) {
    const status = readFileSync(`/proc/${member}/status`, 'utf8')
    const of = (key: string): number => Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
    sum.all += of('VmRSS')
    sum.own += of('RssAnon')
  }
  return sum
}
