import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect as connectPlain, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { CertificatePair } from '../../src/certificates/pair.js'
import { type Handler, type ServeOptions, type Server, serve as serveAny } from '../../src/http/listen.js'
import { TicketKeys } from '../../src/http/ticket-keys.js'
import { scratch } from '../scratch.js'

/** The same tests over plain HTTP and, from `over-tls.test.ts`, over TLS: one process runs them over one of both. */

let tls: NonNullable<ServeOptions['tls']> | undefined

const kinds = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  rsa: ['-newkey', 'rsa:2048'],
} as const

/** A certificate for these names, signed by its own key. */
export function madePair(kind: keyof typeof kinds, ...names: readonly string[]): CertificatePair {
  const base = join(scratch('certificates'), `${kind}-${names.join('-').replaceAll('*', 'any')}`)
  const alt = `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`
  const files = ['-keyout', `${base}.key`, '-out', `${base}.pem`]
  const about = ['-nodes', '-days', '2', '-subj', `/CN=${names[0]}`, '-addext', alt]
  execFileSync('openssl', ['req', '-x509', ...kinds[kind], ...files, ...about], { stdio: 'ignore' })
  const [cert, key] = ['pem', 'key'].map((end) => readFileSync(`${base}.${end}`, 'utf8'))
  return { names, cert: cert ?? '', key: key ?? '' }
}

/** What a server needs to speak TLS. */
export function tlsWith(...pairs: readonly CertificatePair[]): NonNullable<ServeOptions['tls']> {
  return { pairs, ticketKeys: new TicketKeys(TicketKeys.memory(), randomBytes).bytes, unknownName: 'default' }
}

/** Whether this process runs over TLS. */
export const isSecure = (): boolean => tls !== undefined

/** From now on `serve` and `connect` speak TLS. */
export function speakTls(): void {
  // `fetch` has no other way to take a certificate that nobody signed.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  tls = tlsWith(madePair('ec', 'localhost'))
}

export const serve = (handler: Handler, options: ServeOptions): Server =>
  serveAny(handler, tls === undefined ? options : { ...options, tls })

/** Address of a server of this process, without a slash at the end. */
export const origin = (port: number): string => `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`

/** A client's connection: bytes that are written before it is up go out then. */
export function connect(port: number, allowHalfOpen = false): Socket {
  const plain = connectPlain({ port, host: '127.0.0.1', allowHalfOpen })
  if (tls === undefined) return plain
  const how = { socket: plain, rejectUnauthorized: false, allowHalfOpen }
  const secure = connectTls(how)
  plain.on('error', (error) => secure.destroy(error))
  secure.resetAndDestroy = () => {
    plain.resetAndDestroy()
    return secure
  }
  secure.once('secureConnect', () => secure.emit('connect'))
  return secure
}

/** The first message of a client. */
export function clientHello(): Promise<Buffer> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.once('data', (bytes) => {
        socket.destroy()
        server.close()
        resolve(bytes)
      })
    }).listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => 'it was closed')
    })
  })
}
