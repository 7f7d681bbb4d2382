import { constants, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { ranks, stepBack } from '../src/actor/priority.js'
import { readServiceKey } from '../src/upload/service-key.js'

/** One hand of the pool that signs with the wallet of the upload service; Piscina calls these by name. */
stepBack(ranks.receipts)
const beat = keepHeartbeat('sign')
const keys = new Map<string, KeyObject>()

function keyOf(path: string): KeyObject {
  let key = keys.get(path)
  if (key === undefined) {
    key = createPrivateKey({ key: readServiceKey(path), format: 'jwk' })
    keys.set(path, key)
  }
  return key
}

/** RSA-PSS over SHA-256. A salt of 0 bytes makes the same signature each time; the network's own have 32. */
export function rsa(task: {
  readonly keyFile: string
  readonly message: Uint8Array
  readonly saltLength: number
}): Uint8Array {
  beat()
  const { keyFile, message, saltLength } = task
  const padding = constants.RSA_PKCS1_PSS_PADDING
  return sign('sha256', message, { key: keyOf(keyFile), padding, saltLength })
}
