import { createHmac, timingSafeEqual } from 'node:crypto'

export const sealBytes = 32

/** HMAC-SHA-256 by the key of the service: nobody else can make it. */
export function sealOf(bytes: Uint8Array, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(bytes).digest()
}

/** Whether this service has sealed these bytes. */
export function isSealed(bytes: Uint8Array, seal: Uint8Array, key: Uint8Array): boolean {
  return seal.length === sealBytes && timingSafeEqual(sealOf(bytes, key), seal)
}
