/** What can happen to one of several machines, each for so long. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import { fillDiskBeside } from '../fill-disk.js'
import { pick } from '../property.js'
import { suspend } from '../suspend.js'
import { type Faults, forSoLong } from './engine-faults.js'
import type { Host } from './hosts.js'
import type { LastingMachine } from './lasting-machine.js'

/** A file system in memory of its own, until this process ends. Throws where that is not permitted. */
export function ownDisk(megabytes: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  const words = ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', folder]
  const { status, stderr } = spawnSync('mount', words, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`no file system in memory: ${stderr}`)
  process.once('exit', () => {
    spawnSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
  })
  const data = join(folder, 'data')
  mkdirSync(data)
  return data
}

export function faultsOfProcess(machine: LastingMachine): Faults {
  const { name } = machine
  return {
    [`machine ${name} is killed`]: forSoLong(
      () => machine.kill(),
      () => machine.start(),
    ),
    [`machine ${name} stands still`]: async (ms) => {
      const child = machine.running.process
      await suspend(child)
      await pause(ms)
      child.kill('SIGCONT')
    },
  }
}

/** `folder` is on a disk of its own. */
export function faultsOfDisk(machine: LastingMachine): Faults {
  const { name, folder } = machine
  const filler = join(folder, '..', 'filler')
  return {
    [`the disk of ${name} is full`]: forSoLong(
      () => fillDiskBeside(filler),
      () => rmSync(filler),
    ),
    [`the disk of ${name} is lost`]: async (ms) => {
      await machine.kill()
      for (const one of readdirSync(folder)) rmSync(join(folder, one), { recursive: true })
      await pause(ms)
      await machine.start()
    },
  }
}

const offMs = 600_000

/** `path`: of the file that its clock heeds (shifted-clock.ts). */
export function faultsOfClock(machine: LastingMachine, path: string): Faults {
  const set = (ms: number): void => writeFileSync(path, String(ms))
  return {
    [`the clock of ${machine.name} is off`]: forSoLong(
      () => set(pick([offMs, -offMs])),
      () => set(0),
    ),
    [`${machine.name} starts with a wrong clock`]: async (ms) => {
      await machine.kill()
      set(pick([offMs, -offMs]))
      await machine.start()
      await pause(ms)
      set(0)
    },
  }
}

/** `engines`: addresses by name. `others`: its neighbours. */
export function faultsOfCable(
  name: string,
  host: Host,
  engines: ReadonlyMap<string, string>,
  others: readonly Host[],
): Faults {
  const apart = (addresses: readonly string[]) =>
    forSoLong(
      () => addresses.forEach(host.part),
      () => addresses.forEach(host.join),
    )
  return {
    [`${name} is cut from all`]: forSoLong(host.cut, host.heal),
    [`${name} is cut from all engines`]: apart([...engines.values()]),
    [`${name} is cut from its neighbours`]: apart(others.map(({ address }) => address)),
    ...Object.fromEntries(
      [...engines].map(([engine, address]) => [`${name} is cut from ${engine}`, apart([address])]),
    ),
  }
}

/** Both sides have half of the engines. */
export function faultsOfSplit(hosts: readonly Host[], engines: ReadonlyMap<string, string>): Faults {
  const addresses = [...engines.values()]
  const half = Math.ceil(addresses.length / 2)
  const [alone, ...others] = hosts
  if (alone === undefined) return {}
  const cuts: [Host, string][] = [
    ...others.flatMap((other): [Host, string][] => [
      [other, alone.address],
      ...addresses.slice(half).map((address): [Host, string] => [other, address]),
    ]),
    ...[...addresses.slice(0, half), ...others.map(({ address }) => address)].map(
      (address): [Host, string] => [alone, address],
    ),
  ]
  return {
    'the machines are split': forSoLong(
      () => {
        for (const [host, address] of cuts) host.part(address)
      },
      () => {
        for (const [host, address] of cuts) host.join(address)
      },
    ),
  }
}
