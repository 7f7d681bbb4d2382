import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Memory that all threads of the process share: whether it stops, and how far it is drained. */
const sharedName = 'sluice stopping'
const [stoppingCell, drainingCell] = [0, 1] as const

const stoppingReason = 'it is stopping: new requests should go elsewhere'
const drainingReason = 'it is being drained (sluice cluster drain): new requests should go elsewhere'

/** `noted`: health answers say it, and everything is taken. `closed`: new uploads are refused. */
export type Draining = 'no' | 'noted' | 'closed'
const drainings: readonly Draining[] = ['no', 'noted', 'closed']

function shared(): Int32Array | undefined {
  const memory = getEnvironmentData(sharedName)
  return memory instanceof SharedArrayBuffer ? new Int32Array(memory) : undefined
}

function read(cell: number): number {
  const cells = shared()
  return cells === undefined ? 0 : Atomics.load(cells, cell)
}

function write(cell: number, value: number): void {
  const cells = shared()
  if (cells !== undefined) Atomics.store(cells, cell, value)
}

/** To be called before any thread is started: from then on all of them know. */
export function shareStopping(): void {
  setEnvironmentData(sharedName, new SharedArrayBuffer(8))
}

/** Lets every thread of the process say in its health answers that it stops. */
export function sayStopping(): void {
  write(stoppingCell, 1)
}

/** The same of a machine that is taken out of its cluster, until it is taken in again. */
export function sayDraining(state: Draining): void {
  write(drainingCell, drainings.indexOf(state))
}

/** Whether this machine is taken out of its cluster, as `sayDraining` set it last. */
export function draining(): Draining {
  return drainings[read(drainingCell)] ?? 'no'
}

/** What health answers say, with 503, where new requests should go elsewhere; undefined: they may come. */
export function leavingReason(): string | undefined {
  if (read(stoppingCell) === 1) return stoppingReason
  return draining() === 'no' ? undefined : drainingReason
}
