import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Memory that all threads of the process share. */
const sharedName = 'sluice stopping'

/** What health answers say, with 503, from the word to stop on. Requests are served all the same. */
export const stoppingReason = 'it is stopping: new requests should go elsewhere'

function shared(): Int32Array | undefined {
  const memory = getEnvironmentData(sharedName)
  return memory instanceof SharedArrayBuffer ? new Int32Array(memory) : undefined
}

/** To be called before any thread is started: from then on all of them know. */
export function shareStopping(): void {
  setEnvironmentData(sharedName, new SharedArrayBuffer(4))
}

/** Lets every thread of the process say in its health answers that it stops. */
export function sayStopping(): void {
  const cells = shared()
  if (cells !== undefined) Atomics.store(cells, 0, 1)
}

/** Whether a stop of this process was requested. */
export function isStopping(): boolean {
  const cells = shared()
  return cells !== undefined && Atomics.load(cells, 0) === 1
}
