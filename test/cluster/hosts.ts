import { spawnSync } from 'node:child_process'
import type { Test } from 'tap'

/** A machine as far as its network is concerned: a namespace of its own, with a cable to the others and to the engines. */
export interface Host {
  readonly address: string
  /** Words in front of a command that is to run there. */
  readonly under: readonly string[]
  /** Takes its cable out, or puts it in again: packets vanish, and nobody is told. */
  cut(): void
  heal(): void
  /** The same of its packets to one address alone. */
  part(address: string): void
  join(address: string): void
}

export interface Network {
  readonly hosts: readonly Host[]
  /** Addresses of this side, one for each engine. */
  readonly engines: readonly string[]
}

function does(...words: readonly string[]): boolean {
  return spawnSync('ip', words, { stdio: 'ignore' }).status === 0
}

function must(...words: readonly string[]): void {
  const { status, stderr } = spawnSync('ip', words, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`)
}

/** Nobody has it: what is sent to it arrives nowhere. */
const noMac = '02:de:ad:00:00:01'

function hostAt(name: string, cable: string, address: string): Host {
  return {
    address,
    under: ['ip', 'netns', 'exec', name],
    cut: () => must('link', 'set', cable, 'down'),
    heal: () => must('link', 'set', cable, 'up'),
    part: (other) =>
      must('-n', name, 'neigh', 'replace', other, 'lladdr', noMac, 'nud', 'permanent', 'dev', 'eth0'),
    join: (other) => must('-n', name, 'neigh', 'del', other, 'dev', 'eth0'),
  }
}

/**
 * Hosts on one bridge, to which this process belongs, too (network namespaces; iproute2, as root). Removed at the test's end.
 * Throws where it is not permitted.
 */
export function startNetwork(t: Test, hosts: number, engines: number): Network {
  const [bridge, net] = [`sb${process.pid}`, `10.214.${process.pid % 250}`]
  must('link', 'add', bridge, 'type', 'bridge')
  const names = Array.from({ length: hosts }, (_, at) => ({ name: `sluice-${process.pid}-${at}`, at }))
  const remove = (): void => {
    for (const { name } of names) does('netns', 'del', name)
    does('link', 'del', bridge)
  }
  process.once('exit', remove)
  t.teardown(remove)
  const places = Array.from({ length: engines }, (_, at) => `${net}.${201 + at}`)
  for (const address of [`${net}.254`, ...places]) must('addr', 'add', `${address}/24`, 'dev', bridge)
  must('link', 'set', bridge, 'up')
  const made = names.map(({ name, at }) => {
    const [cable, address] = [`sv${process.pid}n${at}`, `${net}.${at + 1}`]
    must('netns', 'add', name)
    must('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    must('link', 'set', cable, 'master', bridge)
    must('link', 'set', cable, 'up')
    must('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
    for (const device of ['eth0', 'lo']) must('-n', name, 'link', 'set', device, 'up')
    return hostAt(name, cable, address)
  })
  return { hosts: made, engines: places }
}
