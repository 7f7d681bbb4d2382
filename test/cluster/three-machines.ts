import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { pause } from '../../src/actor/clock.js'
import { type PostgresServer, startPostgres } from '../engines/postgres-server.js'
import { bucketAt, type Radosgw, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { program, type Running, run } from '../flow/running.js'
import { random } from '../property.js'
import { scratch } from '../scratch.js'
import { suspend } from '../suspend.js'
import { ClusterLoad, loadSettings, type MachineUrls } from './cluster-load.js'

export const machineNames = ['one', 'two', 'three'] as const
export type MachineName = (typeof machineNames)[number]

/** Lets something fail for so long; resolves when it is well again. */
export type Fault = (ms: number) => Promise<void>

/** A chain of its own; resolves with its URL. */
async function startChain(t: Test): Promise<string> {
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
  return url
}

/** Three machines with all services on one PostgreSQL, one bucket and one chain, clients of all of them, and what can fail. */
export class ThreeMachines {
  readonly load = new ClusterLoad(() => [...this.#urls.values()], random)
  readonly #folders = new Map(machineNames.map((name) => [name, scratch(name)]))
  readonly #machines = new Map<MachineName, Running>()
  readonly #urls = new Map<MachineName, MachineUrls>()
  readonly #logs: [MachineName, Running['log']][] = []
  /** A gateway that has nothing but the chain. */
  #reader: Running | undefined

  private constructor(
    private readonly t: Test,
    private readonly objects: Radosgw,
    private readonly database: PostgresServer,
    private readonly settings: Readonly<Record<string, string>>,
  ) {}

  /** All up, with credits for the clients. */
  static async start(t: Test): Promise<ThreeMachines> {
    const [objects, database, node] = await Promise.all([startRadosgw(), startPostgres(), startChain(t)])
    t.teardown(() => Promise.all([objects.stop(), database.stop()]))
    // The wallet of the upload services, too.
    await payerAt(node)
    const cluster = await database.database('cluster')
    const chain = { TRUSTED_NODE_URL: node }
    const machines = new ThreeMachines(t, objects, database, {
      ...chain,
      ...loadSettings,
      ...storeSettings(objects, await bucketAt(objects)),
      SERVICES: 'gateway,upload,payment',
      CLUSTER_DATABASE_URL: cluster,
      PAYMENT_DATABASE_URL: cluster,
      CLUSTER_TAKEOVER_SECONDS: '30',
      UPLOAD_BUNDLE_WAIT_SECONDS: '2',
      SHUTDOWN_DRAIN_MS: '1000',
    })
    const opens = { ANS104_UNBUNDLE_FILTER: '{"always": true}', SERVICES: 'gateway' }
    machines.#reader = await run(t, scratch('reader'), { ...chain, ...opens })
    for (const name of machineNames) await machines.#start(name)
    await machines.load.begin()
    return machines
  }

  async #start(name: MachineName): Promise<void> {
    const machine = await run(this.t, this.#folders.get(name) ?? '', { ...this.settings, CLUSTER_NODE: name })
    this.#machines.set(name, machine)
    this.#urls.set(name, machine.urls as MachineUrls)
    this.#logs.push([name, machine.log])
  }

  /** By name, what can fail. */
  get faults(): Readonly<Record<string, Fault>> {
    const { database, objects } = this
    const ofMachine = machineNames.flatMap((name): [string, Fault][] => [
      [`machine ${name} is killed`, (ms) => this.#killed(name, ms)],
      [`machine ${name} stands still`, (ms) => this.#still(name, ms)],
    ])
    return {
      ...Object.fromEntries(ofMachine),
      'PostgreSQL stands still': async (ms) => {
        database.hang()
        await pause(ms)
        database.wake()
      },
      'PostgreSQL is away': async (ms) => {
        await database.stop()
        await pause(ms)
        await database.start()
      },
      'S3 stands still': async (ms) => {
        await suspend(objects.gateway)
        await pause(ms)
        objects.gateway.kill('SIGCONT')
      },
      'S3 answers errors': async (ms) => {
        await suspend(objects.objects)
        await pause(ms)
        objects.objects.kill('SIGCONT')
      },
    }
  }

  async #killed(name: MachineName, ms: number): Promise<void> {
    await this.#machines.get(name)?.kill()
    await pause(ms)
    await this.#start(name)
  }

  async #still(name: MachineName, ms: number): Promise<void> {
    const child = this.#machines.get(name)?.process
    if (child === undefined) return
    await suspend(child)
    await pause(ms)
    child.kill('SIGCONT')
  }

  /** Compares all that was acknowledged with what is there, and stops the machines. Throws where something is lost. */
  async compare(): Promise<void> {
    const { accepted, blocked, counts, faults } = this.load
    const seen = { accepted: accepted.length, blocked: blocked.length, ...Object.fromEntries(counts) }
    this.t.comment(JSON.stringify(seen))
    this.t.strictSame(faults, [])
    await this.load.compare(this.#reader?.urls.gateway ?? '')
    for (const [name, machine] of this.#machines) this.t.equal(await machine.stop(), 0, name)
    await this.#reader?.stop()
  }

  /** The logs of all machines, one file for each start. */
  writeLogs(folder: string): void {
    for (const [at, [name, lines]] of this.#logs.entries()) {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      writeFileSync(join(folder, `${at}-${name}.log`), text)
    }
  }
}
