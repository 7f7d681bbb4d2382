import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { program, type Running, run } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { ClusterLoad } from './cluster-load.js'
import {
  type Engines,
  type Faults,
  faultsOfChain,
  faultsOfObjects,
  faultsOfPostgres,
  faultsOfRedis,
  startEngines,
} from './engine-faults.js'
import type { LastingMachine } from './lasting-machine.js'
import { faultsOfProcess } from './machine-faults.js'
import { farPlaces, nearPlaces, type Places } from './machine-places.js'

/** A chain of its own; resolves with its port. */
export async function startChain(t: Test): Promise<number> {
  const port = await findPort('127.0.0.1', 0, 'the chain')
  const words = ['devnet', '--port', `${port}`, '--block-ms', '1000', '--data', scratch('chain')]
  const child = spawn(process.execPath, [...program, ...words], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  const isUp = (): Promise<boolean> =>
    fetch(`${url}/info`).then(
      ({ ok }) => ok,
      () => false,
    )
  await eventually('the chain answers', isUp)
  return port
}

/**
 * Three machines with all services on one PostgreSQL, one bucket, one Redis and one chain, clients of all of them, and what can
 * fail.
 */
export class ThreeMachines {
  readonly load: ClusterLoad

  private constructor(
    private readonly t: Test,
    private readonly places: Places,
    /** A gateway that has nothing but the chain. */
    private readonly reader: Running,
    /** By name, what can fail. */
    readonly faults: Faults,
  ) {
    this.load = new ClusterLoad(() => places.machines.map(({ urls }) => urls), random)
  }

  /**
   * All up, with credits for the clients. `hasAll`: all faults that there are, for which each machine has a network and a disk of
   * its own. Else each machine is killed or stands still, and each engine is away or stands still. `under`: a command that
   * becomes Node, for each machine.
   */
  static async start(
    t: Test,
    { hasAll = false, under }: { readonly hasAll?: boolean; readonly under?: readonly string[] } = {},
  ): Promise<ThreeMachines> {
    const chain = await startChain(t)
    const engines: Engines = { ...(await startEngines()), chain }
    const { database, objects, redis, bucket } = engines
    t.teardown(() => Promise.all([objects.stop(), database.stop(), redis.stop()]))
    const node = `http://127.0.0.1:${chain}`
    // The wallet of the upload services, too.
    await payerAt(node)
    await database.database('cluster')
    const opens = { ANS104_UNBUNDLE_FILTER: '{"always": true}', SERVICES: 'gateway' }
    const reader = await run(t, scratch('reader'), { TRUSTED_NODE_URL: node, ...opens })
    const places = hasAll ? await farPlaces(t, engines) : nearPlaces(t, engines)
    for (const machine of places.machines) {
      machine.under ??= under
      await machine.start()
    }
    const machines = new ThreeMachines(t, places, reader, {
      ...Object.assign({}, ...places.machines.map(faultsOfProcess)),
      ...places.faults,
      ...faultsOfPostgres(database, hasAll),
      ...faultsOfObjects(objects, bucket, hasAll),
      ...faultsOfRedis(redis, hasAll),
      ...(hasAll ? faultsOfChain(node) : {}),
    })
    await machines.load.begin()
    return machines
  }

  get machines(): readonly LastingMachine[] {
    return this.places.machines
  }

  /** Compares all that was acknowledged with what is there, and stops the machines. Throws where something is lost. */
  async compare(): Promise<void> {
    const { accepted, blocked, counts, faults } = this.load
    const seen = { accepted: accepted.length, blocked: blocked.length, ...Object.fromEntries(counts) }
    this.t.comment(JSON.stringify(seen))
    this.t.strictSame(faults, [])
    await this.load.compare(this.reader.urls.gateway ?? '')
    for (const { name, running } of this.places.machines) this.t.equal(await running.stop(), 0, name)
    await this.reader.stop()
  }

  /** The logs of all machines, one file for each start. */
  writeLogs(folder: string): void {
    for (const { name, logs } of this.places.machines) {
      for (const [at, lines] of logs.entries()) {
        const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
        writeFileSync(join(folder, `${name}-${at}.log`), text)
      }
    }
  }
}
