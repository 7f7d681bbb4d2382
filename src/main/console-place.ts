import type { Config } from '../../config/read.js'
import { consolePortOf } from '../../config/server.js'
import type { Part } from '../actor/supervise.js'
import { vocabularies } from '../attest/vocabulary.js'
import type { EdgeGiven } from '../threads/edge-given.js'
import { found, urlOf } from './ports.js'
import type { TlsPlaces } from './tls-place.js'

/** Where the console is; nothing where the operator wants none. */
export interface ConsolePlace {
  readonly parts: Part[]
  /**
   * Where the edge thread of this number (from 0) serves it: only one edge thread serves the console, which is enough
   * for one operator.
   */
  place(index: number): Pick<EdgeGiven, 'console'>
  /** What to open in a browser on this machine, by name. */
  urls(): Readonly<Record<string, string>>
}

/** The place of the console: an address of its own, so that no content of others shares its origin. */
export function consoleOf({ server, tls }: Config, places: TlsPlaces): ConsolePlace {
  const { consoleEnabled, consoleAddress: host } = server
  if (!consoleEnabled) return { parts: [], place: () => ({}), urls: () => ({}) }
  let port = consolePortOf(server)
  const secure = places.listener(tls.consolePort, 'CONSOLE_TLS_PORT')
  const page = `${vocabularies[server.vocabulary].pathPrefix}/console`
  return {
    parts: [
      found(host, port, 'CONSOLE_PORT', (free) => {
        port = free
      }),
      ...secure.parts,
    ],
    place(index) {
      const place = secure.place()
      return index > 0 ? {} : { console: { host, port, ...(place === undefined ? {} : { tls: place }) } }
    },
    urls() {
      const { https } = secure.urls('https')
      const beside = https === undefined ? {} : { consoleHttps: `${https}${page}` }
      return { console: `${urlOf(host, port)}${page}`, ...beside }
    },
  }
}
