import type { Test } from 'tap'
import { claim } from '../../src/actor/claim.js'
import { pause } from '../../src/actor/clock.js'
import { conditions, type Running, run } from '../flow/running.js'
import type { MachineUrls } from './cluster-load.js'

export interface MachineGiven {
  readonly name: string
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  /** For Node. */
  readonly words?: readonly string[]
  /** A command that becomes Node. */
  readonly under?: readonly string[]
}

/** A command that becomes the program of another release, whose sources are in a folder and built. */
export function otherRelease(folder: string): readonly string[] {
  return ['sh', '-c', `exec "$0" --single-threaded-gc '${folder}/bin/sluice.mjs' start`]
}

const [startsMax, betweenStartsMs] = [20, 3000] as const

/** A machine whose program is ended and started again, over one folder. */
export class LastingMachine {
  /** Of each start. */
  readonly logs: Running['log'][] = []
  readonly name: string
  readonly folder: string
  /** A command that becomes Node with the next start. */
  under: readonly string[] | undefined
  #running: Running | undefined

  constructor(
    private readonly t: Test,
    private readonly given: MachineGiven,
  ) {
    this.name = given.name
    this.folder = given.folder
    this.under = given.under
  }

  get running(): Running {
    if (this.#running === undefined) throw new Error(`${this.name} was not started`)
    return this.#running
  }

  get urls(): MachineUrls {
    return this.running.urls as MachineUrls
  }

  /** As its unit file has it, a program that ends while it starts is started again, so many times at most. */
  async start(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        this.#running = await this.#run()
        this.logs.push(this.#running.log)
        return
      } catch (error) {
        if (tries === startsMax) throw error
        this.t.comment(`${this.name} did not start: ${String(error).slice(0, 200)}`)
      }
      await pause(betweenStartsMs)
    }
  }

  #run(): Promise<Running> {
    const { name, folder, settings, words = [] } = this.given
    const all = { ...settings, CLUSTER_NODE: name }
    return run(this.t, folder, all, [...conditions, ...words], this.under)
  }

  /**
   * Ends its program without a warning. Its ports stay without a listener until the test ends: another program that got one of
   * them would answer the clients of this machine.
   */
  async kill(): Promise<void> {
    await this.running.kill()
    for (const url of Object.values(this.running.urls)) await claim(`port ${new URL(url).port}`)
  }
}
