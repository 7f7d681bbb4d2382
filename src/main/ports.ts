import { findPort } from '../actor/claim.js'
import type { Part } from '../actor/supervise.js'

/** Finds the port of a `setting` before anything listens there; `tell` is called with it. */
export function found(host: string, port: number, setting: string, tell?: (port: number) => void): Part {
  return {
    name: setting,
    start: async () => {
      const free = await findPort(host, port, setting)
      tell?.(free)
      return { stop: () => Promise.resolve() }
    },
  }
}

/** What to open in a browser on this machine. */
export function urlOf(host: string, port: number, protocol: 'http' | 'https' = 'http'): string {
  const name =
    host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return `${protocol}://${name}:${port}`
}
