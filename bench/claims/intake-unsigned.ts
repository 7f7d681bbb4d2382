/**
 * Preloaded into the upload service for one line of the intake bench: receipts of zeros, without the pool that signs them, so
 * that all else can be measured. Transactions are signed. The threads of the program are bundles: what they import can be changed
 * from outside only where it stayed a package of its own.
 */
import { Piscina } from 'piscina'

const run = Piscina.prototype.run
Piscina.prototype.run = function (
  this: Piscina,
  task: { readonly saltLength?: number; readonly messages?: readonly Uint8Array[] },
  ...more
) {
  const { saltLength, messages = [] } = task
  if (saltLength !== 0) return run.call(this, task, ...more)
  return Promise.resolve(new Uint8Array(512 * messages.length))
}
