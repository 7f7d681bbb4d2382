import { connect, type PeerCertificate } from 'node:tls'
import { type Config, readConfig } from '../../config/read.js'
import { pause, systemClock } from '../actor/clock.js'
import { expiryNoticeMs, wrongTime } from '../certificates/check.js'
import { CurrentCertificates } from '../certificates/current.js'
import { certificateSources, issueNow } from '../main/certificates.js'
import { commandWords } from './command-words.js'
import { exitCode } from './exit-code.js'

const help = `sluice tls: certificates of the HTTPS listener

Usage: sluice tls status
       sluice tls check [HOST[:PORT]]
       sluice tls renew

  status  lists the certificates that the settings name: names, issuer, expiry, file
  check   the same, and ends with 1 where one cannot be used, or expires within 14 days. With HOST: connects, and says what is
          served there and whether clients would trust it
  renew   gets a new certificate from the ACME server now (TLS_ACME). The program may run: it answers the challenge, and uses the
          new certificate within seconds

Settings are environment variables; see sluice settings tls.

Exit codes: 0 done, 1 a certificate is wrong or expires soon, 2 wrong arguments or settings, 5 no connection.

Examples:
  sluice tls status
  sluice tls check gateway.example
  TLS_ACME=true sluice tls renew
`

const dayMs = 86_400_000
const connectMs = 10_000

/** Certificates of the HTTPS listener. */
export async function tlsCommand(words: readonly string[]): Promise<number> {
  const positionals = commandWords(words, help)
  if (positionals === undefined) return exitCode.done
  const [what, address, ...others] = positionals
  if (others.length > 0 || (address !== undefined && what !== 'check')) return wrong('too many words')
  if (what === 'check' && address !== undefined) return checkServed(address)
  const config = readConfig()
  if (Array.isArray(config)) return wrong(config.join('\n  '))
  if (what === 'status' || what === 'check') return list(config, what === 'check')
  if (what === 'renew') return renew(config)
  return wrong('say status, check or renew')
}

function wrong(message: string): number {
  process.stderr.write(`sluice tls: ${message}; see sluice tls --help\n`)
  return exitCode.usage
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function list(config: Config, isCheck: boolean): number {
  const now = systemClock.now()
  const current = new CurrentCertificates(certificateSources(config))
  current.read(now)
  const { pairs, refused } = current
  for (const { names, issuer, notAfterMs, certFile } of pairs)
    say(`${names.join(' ')}\n  by ${issuer}, ${expiry(notAfterMs, now)}\n  ${certFile}`)
  for (const { file, why } of refused) say(`cannot be used: ${file}\n  ${why}`)
  if (pairs.length + refused.length === 0)
    say(config.tls.acme ? 'none was issued yet' : 'the settings name none: see sluice settings tls')
  const late = pairs.filter((pair) => wrongTime(pair, now + expiryNoticeMs) !== undefined)
  return isCheck && (refused.length > 0 || late.length > 0 || pairs.length === 0)
    ? exitCode.failed
    : exitCode.done
}

function expiry(notAfterMs: number, nowMs: number): string {
  const days = Math.floor(Math.abs(notAfterMs - nowMs) / dayMs)
  const when = new Date(notAfterMs).toISOString()
  return notAfterMs > nowMs ? `expires in ${days} days, ${when}` : `EXPIRED ${days} days ago, ${when}`
}

async function renew(config: Config): Promise<number> {
  if (!config.tls.acme) return wrong('TLS_ACME is not set')
  try {
    const file = await issueNow(config)
    say(`issued: ${file}`)
    return exitCode.done
  } catch (error) {
    process.stderr.write(`sluice tls: ${(error as Error).message}\n`)
    return exitCode.failed
  }
}

interface Served {
  readonly protocol: string
  readonly cipher: string
  readonly leaf: PeerCertificate
  /** Why clients would not trust it. */
  readonly distrust: string | undefined
}

async function checkServed(address: string): Promise<number> {
  const [, host, port = '443'] = /^(\[[0-9a-fA-F:.]+\]|[^:/\s]+)(?::(\d{1,5}))?$/.exec(address) ?? []
  if (host === undefined) return wrong(`${address} is not HOST or HOST:PORT`)
  let served: Served
  try {
    served = await connected(host.replace(/^\[|\]$/g, ''), Number(port))
  } catch (error) {
    process.stderr.write(`sluice tls: ${address}: ${(error as Error).message}\n`)
    return exitCode.unreachable
  }
  const { protocol, cipher, leaf, distrust } = served
  const now = systemClock.now()
  const notAfterMs = Date.parse(leaf.valid_to)
  const names = (leaf.subjectaltname ?? '').replaceAll('DNS:', '').replaceAll(', ', ' ')
  say(
    `${names}\n  by ${leaf.issuer?.CN ?? leaf.issuer?.O ?? 'unknown'}, ${expiry(notAfterMs, now)}\n  ${protocol}, ${cipher}`,
  )
  if (distrust !== undefined) say(`  clients do not trust it: ${distrust}`)
  return distrust !== undefined || notAfterMs < now + expiryNoticeMs ? exitCode.failed : exitCode.done
}

async function connected(host: string, port: number): Promise<Served> {
  // Certificates that nobody trusts are shown, too: that is what the command is for. Nothing is sent.
  const socket = connect({
    host,
    port,
    ...(/[a-z]/i.test(host) && !host.includes(':') ? { servername: host } : {}),
    rejectUnauthorized: false,
  })
  const late = new AbortController()
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve).once('error', reject)
      void pause(connectMs, late.signal).then(() => reject(new Error('no answer within 10 s')))
    })
    return {
      protocol: socket.getProtocol() ?? 'unknown',
      cipher: socket.getCipher().name,
      leaf: socket.getPeerCertificate(),
      distrust: socket.authorized ? undefined : String(socket.authorizationError),
    }
  } finally {
    late.abort()
    socket.destroy()
  }
}
