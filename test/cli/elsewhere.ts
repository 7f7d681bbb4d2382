/** Another machine, as far as one machine can be that: a network of its own, and a user of its own. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Elsewhere {
  /** Words in front of a command that is to run there. */
  readonly under: readonly string[]
  /** By which name this machine is known there. */
  readonly host: string
  /** Where a program of this machine must listen to be reached from there. */
  readonly listenAddress: string
  /** What it has of its own, for people. */
  readonly what: string
}

const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

function does(words: readonly string[]): boolean {
  const [command = '', ...rest] = words
  return spawnSync(command, rest, { stdio: 'ignore' }).status === 0
}

/** A network namespace with a cable to this one, removed at the test's end. Undefined: it is not permitted here. */
function ownNetwork(t: Test): Omit<Elsewhere, 'what'> | undefined {
  const name = `sluice-${process.pid}`
  const [here, there] = [`sl${process.pid}a`, `sl${process.pid}b`]
  if (!does(['ip', 'netns', 'add', name])) return undefined
  // What stands in this folder takes the place of the files of /etc there.
  const etc = join('/etc/netns', name)
  t.teardown(() => {
    does(['ip', 'netns', 'del', name])
    rmSync(etc, { recursive: true, force: true })
  })
  const net = `10.213.${process.pid % 250}`
  const host = 'gateway.test'
  const isUp = [
    ['ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name],
    ['ip', 'addr', 'add', `${net}.1/30`, 'dev', here],
    ['ip', 'link', 'set', here, 'up'],
    ['ip', '-n', name, 'addr', 'add', `${net}.2/30`, 'dev', there],
    ['ip', '-n', name, 'link', 'set', there, 'up'],
  ].every(does)
  if (!isUp) return undefined
  mkdirSync(etc, { recursive: true })
  writeFileSync(join(etc, 'hosts'), `${net}.1 ${host}\n`)
  return { under: ['ip', 'netns', 'exec', name], host, listenAddress: `${net}.1` }
}

/** As much of another machine as is permitted here. `command` must be able to run there. */
export function elsewhere(t: Test, command: readonly string[]): Elsewhere {
  const network = ownNetwork(t)
  const { under, ...place } = network ?? { under: [], host: 'localhost', listenAddress: '127.0.0.1' }
  const isUser = does([...under, ...asNobody, ...command])
  const what = `${network === undefined ? 'the same' : 'its own'} network, ${isUser ? 'its own' : 'the same'} user`
  return { ...place, under: isUser ? [...under, ...asNobody] : under, what }
}
