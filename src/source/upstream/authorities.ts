import { readFileSync } from 'node:fs'
import * as tls from 'node:tls'
import type { TlsTrust } from '../../../native/client/client.js'

/** Present from Node 22.15 on: all that Node checks servers against, with those of NODE_EXTRA_CA_CERTS and of the system. */
const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => readonly string[] }

/**
 * The authorities and ciphers that Node uses for its own connections. `extraFile`: certificates beside those that Node brings
 * along, as in NODE_EXTRA_CA_CERTS; one that cannot be read counts as empty, as for Node.
 */
export function nodesTrust(extraFile: string | undefined): TlsTrust {
  const ciphers = tls.DEFAULT_CIPHERS.split(':')
  const isSuite = (word: string): boolean => word.startsWith('TLS_')
  return {
    authorities: authorities(extraFile).join('\n'),
    suites: ciphers.filter(isSuite).join(':'),
    ciphers: ciphers.filter((word) => !isSuite(word)).join(':'),
  }
}

function authorities(extraFile: string | undefined): readonly string[] {
  if (getCACertificates !== undefined) return getCACertificates('default')
  return [...tls.rootCertificates, extraFile === undefined ? '' : readOrNothing(extraFile)]
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Node has warned of it at the start.
    return ''
  }
}
