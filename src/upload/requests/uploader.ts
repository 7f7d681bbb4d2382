import type { Clients } from '../../admission/clients.js'
import type { Request } from '../../http/exchange.js'

/** Who uploads, and who pays. */
export interface Uploader {
  /** IP address of the client (`uploaderAddress`), by which limits and free bytes count. Undefined: this machine, not limited. */
  readonly address: string | undefined
  /** Wallets that pay, in this order. */
  readonly paidBy: readonly string[]
  /** Word of the path that names a currency. */
  readonly token: string | undefined
}

/** A wallet's address of any network. */
export const addressShape = /^(?:0[xX][0-9a-fA-F]{40}|[\w-]{32,44}|kyve1[0-9a-z]{38})$/

/** Wallets of `x-paid-by`: several lines, or several in a line; empty places do not count. At most 64. */
export function readPaidBy(header: string | undefined): readonly string[] {
  if (header === undefined) return []
  const names = header.split(',').map((name) => name.trim())
  return names.filter((name) => name !== '').slice(0, 64)
}

/** Who sends a request. `token`: word of its path. */
export function uploaderOf(request: Request, clients: Clients, token: string | undefined): Uploader {
  const address = uploaderAddress(clients.of(request).address)
  return { address, paidBy: readPaidBy(request.header('x-paid-by')), token }
}

/** The address of a client as limits go by; undefined: this machine's own. */
export function uploaderAddress(address: string): string | undefined {
  return /^127\.|^::1$|^::$/.test(address) ? undefined : address
}
