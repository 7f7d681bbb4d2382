import { constants, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { keepHeartbeat } from '../../actor/heartbeats.js'
import { ranks, stepBack } from '../../actor/priority.js'
import { readServiceKey } from '../../upload/records/service-key.js'

/** One thread of the pool that signs with the wallet of the upload service; Piscina calls these by name. */
stepBack(ranks.receipts)
const beat = keepHeartbeat('sign')
const none = new Uint8Array(0)
const keys = new Map<string, KeyObject>()

function keyOf(path: string): KeyObject {
  let key = keys.get(path)
  if (key === undefined) {
    key = createPrivateKey({ key: readServiceKey(path), format: 'jwk' })
    keys.set(path, key)
  }
  return key
}

/**
 * RSA-PSS over SHA-256: the signatures of the messages one behind the other. A salt of 0 bytes makes the same signature each
 * time; the network's own have 32.
 */
export function rsa(task: {
  readonly keyFile: string
  readonly messages: readonly Uint8Array[]
  readonly saltLength: number
}): Uint8Array {
  const { keyFile, messages, saltLength } = task
  const padding = constants.RSA_PKCS1_PSS_PADDING
  const key = keyOf(keyFile)
  let all = none
  for (const [at, message] of messages.entries()) {
    beat()
    const signature = sign('sha256', message, { key, padding, saltLength })
    // Memory of its own: of a view the whole memory behind it would be copied to the other thread.
    if (at === 0) all = new Uint8Array(signature.length * messages.length)
    all.set(signature, at * signature.length)
  }
  return all
}
