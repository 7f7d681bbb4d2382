/** An ACME server and its name server: `pebble` and `pebble-challtestsrv` (Debian: pebble), on ports of their own. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { authority, signed } from './made.js'

/** False, or why tests with it are left out. */
export const withoutPebble =
  spawnSync('pebble', ['-help']).error === undefined &&
  spawnSync('pebble-challtestsrv', ['-help']).error === undefined
    ? false
    : 'pebble is not installed (Debian: pebble)'

export interface Pebble {
  readonly directoryUrl: string
  /** The authority of its own https, a file. */
  readonly caFile: string
  /** Where it requests the answers of http-01. */
  readonly httpPort: number
  /** A hook for `TLS_DNS_HOOK` that sets records at its name server, and writes its words to `hookLog`. */
  readonly hook: string
  readonly hookLog: string
  /** Where records of its name server are set: `/set-txt`, `/clear-txt` (pebble-challtestsrv). */
  readonly dnsApi: string
  /** The authority that signs what it issues, PEM. */
  issuer(): string
}

const directoryPath = '/dir'

/** Every name has the address 127.0.0.1. It is ended with the test. */
export async function startPebble(
  t: Test,
  options: { externalAccount?: { keyId: string; hmacKey: string } } = {},
): Promise<Pebble> {
  const folder = scratch('pebble')
  const [port, management, httpPort, dns, dnsManagement] = await Promise.all(
    [1, 2, 3, 4, 5].map(() => findPort('127.0.0.1', 0, 'a port of Pebble')),
  )
  const ca = authority(join(folder, 'ca'), 'pebble')
  const own = signed(join(folder, 'own'), ca, { names: ['localhost'] })
  const at = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const caFile = at('ca.pem', ca.cert)
  const { externalAccount } = options
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: at('own.crt', own.cert),
      privateKey: at('own.key', own.key),
      httpPort,
      tlsPort: 1,
      ocspResponderURL: '',
      externalAccountBindingRequired: externalAccount !== undefined,
      ...(externalAccount && {
        externalAccountMACKeys: { [externalAccount.keyId]: externalAccount.hmacKey },
      }),
    },
  }
  const environment = { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0' }
  const started: ChildProcess[] = []
  const start = (program: string, words: readonly string[]): void => {
    started.push(spawn(program, words, { env: environment, stdio: 'ignore' }))
  }
  t.teardown(() => {
    for (const child of started) child.kill('SIGKILL')
  })
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', '']
  start('pebble-challtestsrv', [
    '-dns01',
    `127.0.0.1:${dns}`,
    '-management',
    `127.0.0.1:${dnsManagement}`,
    '-defaultIPv4',
    '127.0.0.1',
    '-defaultIPv6',
    '',
    ...none,
  ])
  start('pebble', ['-config', at('config.json', JSON.stringify(config)), '-dnsserver', `127.0.0.1:${dns}`])
  const directoryUrl = `https://localhost:${port}${directoryPath}`
  await eventually(
    'pebble answers',
    () => spawnSync('curl', ['-sf', '--cacert', caFile, directoryUrl]).status === 0,
  )
  const hookLog = join(folder, 'hook.log')
  const hook = at(
    'hook.sh',
    `#!/bin/sh
set -e
echo "$*" >> '${hookLog}'
api=http://127.0.0.1:${dnsManagement}
# The name server can only remove all records of a name, also that of the wildcard, which may still be needed.
[ "$1" = remove ] || exec curl -sf "$api/set-txt" -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}"
`,
  )
  chmodSync(hook, 0o755)
  const dnsApi = `http://127.0.0.1:${dnsManagement}`
  const issuer = (): string =>
    execFileSync('curl', ['-sf', '--cacert', caFile, `https://localhost:${management}/roots/0`], {
      encoding: 'utf8',
    })
  return { directoryUrl, caFile, httpPort: httpPort ?? 0, hook, hookLog, dnsApi, issuer }
}
