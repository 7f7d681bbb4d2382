/** Chains of certificates for tests, made by the openssl command, which nobody here wrote. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Made {
  readonly cert: string
  readonly key: string
}

const run = (words: readonly string[]): void => {
  execFileSync('openssl', [...words], { stdio: 'ignore' })
}

export interface Wish {
  readonly names?: readonly string[]
  /** `-newkey` of openssl. */
  readonly kind?: readonly string[]
  /** `-not_before` and `-not_after` are not in all versions: days from now, negative for an expired one. */
  readonly days?: number
}

const p256 = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']

/** An authority of its own. */
export function authority(folder: string, name: string): Made {
  mkdirSync(folder, { recursive: true })
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  const words = [
    'req',
    '-x509',
    '-nodes',
    '-days',
    '30',
    '-subj',
    `/CN=${name}`,
    '-keyout',
    key,
    '-out',
    cert,
  ]
  run([...words, '-newkey', ...p256])
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

/** A certificate that an authority signed. */
export function signed(
  folder: string,
  by: Made,
  { names = ['a.example'], kind = p256, days = 10 }: Wish,
): Made {
  mkdirSync(folder, { recursive: true })
  const at = (name: string): string => join(folder, name)
  writeFileSync(at('ca.crt'), by.cert)
  writeFileSync(at('ca.key'), by.key)
  writeFileSync(
    at('ext'),
    names.length === 0 ? '' : `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}\n`,
  )
  run([
    'req',
    '-new',
    '-nodes',
    '-subj',
    '/CN=x',
    '-keyout',
    at('key'),
    '-out',
    at('csr'),
    '-newkey',
    ...kind,
  ])
  const words = [
    'x509',
    '-req',
    '-in',
    at('csr'),
    '-CA',
    at('ca.crt'),
    '-CAkey',
    at('ca.key'),
    '-CAcreateserial',
  ]
  run([...words, '-days', String(days), '-extfile', at('ext'), '-out', at('crt')])
  return { cert: readFileSync(at('crt'), 'utf8'), key: readFileSync(at('key'), 'utf8') }
}
