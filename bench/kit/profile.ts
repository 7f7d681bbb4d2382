import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import { workFolder } from './folders.js'

/** Samples a second: each costs some microseconds, so that less than a hundredth of the load is spent on them. */
const samplesPerSecond = 997

/** A part of a program's processor time. */
interface Part {
  readonly share: number
  readonly place: string
  readonly symbol: string
}

/** Whose code a shared object of perf's report is. */
function ownerOf(place: string): string {
  if (place.startsWith('[kernel')) return 'kernel'
  if (place.startsWith('perf-') || place.startsWith('[JIT]') || place.startsWith('[unknown'))
    return 'JavaScript'
  if (place === 'node') return 'V8 and Node'
  return place
}

/** Reads lines of `perf report --stdio`: share, shared object, kind, symbol. */
export function partsOf(report: string): Part[] {
  return report.split('\n').flatMap((line) => {
    const [, share, place, symbol] =
      /^\s+([\d.]+)%\s+(\S+(?: tid \d+)?)\s+\[.\]\s+(\S.*?)(?:\s+-)*\s*$/.exec(line) ?? []
    return share === undefined || place === undefined || symbol === undefined
      ? []
      : [{ share: Number(share), place, symbol }]
  })
}

/** Where the time went, in two lines: by whose code it was, and the functions that took most. */
export function profileLines(parts: readonly Part[]): string[] {
  const owners = new Map<string, number>()
  for (const { place, share } of parts) owners.set(ownerOf(place), (owners.get(ownerOf(place)) ?? 0) + share)
  const percent = (share: number): string => `${share.toFixed(share < 10 ? 1 : 0)} %`
  const byOwner = [...owners].toSorted(([, one], [, other]) => other - one).filter(([, share]) => share >= 1)
  const most = parts.filter(({ symbol }) => !symbol.startsWith('0x')).slice(0, 12)
  return [
    `of its time: ${byOwner.map(([owner, share]) => `${owner} ${percent(share)}`).join(', ')}`,
    `most in: ${most.map(({ symbol, share }) => `${symbol} ${percent(share)}`).join(', ')}`,
  ]
}

/** Whether processes can be profiled here. */
export function canProfile(): boolean {
  return spawnSync('perf', ['record', '-o', '/dev/null', 'true'], { stdio: 'ignore' }).status === 0
}

/** Profiles all threads of a program while `act` runs. Resolves with what it gives, and where the time went. */
export async function profiled<T>(pid: number, act: () => Promise<T>): Promise<{ of: T; lines: string[] }> {
  const path = join(workFolder, `profile-${pid}`)
  const words = ['record', '-q', '-F', String(samplesPerSecond), '-p', String(pid), '-o', path]
  const perf = spawn('perf', words, { stdio: 'ignore' })
  try {
    await pause(300)
    const of = await act()
    perf.kill('SIGINT')
    if (perf.exitCode === null) await once(perf, 'exit')
    const reporting = [
      'report',
      '-i',
      path,
      '--stdio',
      '--no-children',
      '--sort',
      'dso,symbol',
      '-w',
      '40,120',
    ]
    const { stdout } = spawnSync('perf', reporting, { encoding: 'utf8', maxBuffer: 2 ** 26 })
    return { of, lines: profileLines(partsOf(stdout)) }
  } finally {
    perf.kill('SIGKILL')
    rmSync(path, { force: true })
  }
}
