import { join, resolve } from 'node:path'
import type { Config } from '../../config/read.js'
import { acmeNamesOf } from '../../config/tls.js'
import { Backoff } from '../actor/backoff.js'
import { tryClaimFolder } from '../actor/claim.js'
import { type Clock, systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Part, RunningPart } from '../actor/supervise.js'
import { issueCertificate, issuedFile, issuedFolder } from '../certificates/acme.js'
import { Challenges } from '../certificates/challenges.js'
import {
  type CertificateSources,
  CurrentCertificates,
  type PlacedPair,
  type RefusedPair,
} from '../certificates/current.js'
import { DnsHook } from '../certificates/dns-hook.js'
import type { CertificatePair } from '../certificates/pair.js'
import { Renewal } from '../certificates/renewal.js'
import { selfSigned } from '../certificates/self-signed.js'
import { makeFolder } from '../store/folder.js'
import { folders } from '../threads/folders.js'

/** How often the files are looked at: their times, and those that changed are read. */
const lookMs = 5000

/** Days of a certificate that is made here. */
const ownDays = 90

/** After a failure no attempt is made for so long, then for twice as long: servers allow about five failures an hour. */
const backoff = { failuresMax: 1, restMs: 5 * 60_000, restMaxMs: 12 * 3_600_000 }

/** Where the challenges of http-01 lie below DATA_PATH. */
export function challengesFolder(config: Pick<Config, 'server'>): string {
  return join(folders(config).tls, 'challenges')
}

/** Where the settings say that certificates lie. */
export function certificateSources({ tls, server }: Pick<Config, 'tls' | 'server'>): CertificateSources {
  const { certFile, keyFile, certsPath, acme } = tls
  return {
    ...(certFile === undefined || keyFile === undefined
      ? {}
      : { pair: { certFile: resolve(certFile), keyFile: resolve(keyFile) } }),
    ...(acme ? { issued: join(folders({ server }).tls, issuedFolder) } : {}),
    ...(certsPath === undefined ? {} : { folder: resolve(certsPath) }),
  }
}

/**
 * Gets a certificate for the names of the settings, in the place where `certificateSources` finds it. Only one process at a time
 * does: rejects where another one is at it, and with the reason of the server or of the hook. Where `end` fires, the hook is
 * ended.
 */
export async function issueNow(
  config: Pick<Config, 'tls' | 'server' | 'names'>,
  end?: AbortSignal,
): Promise<string> {
  const { tls, names } = config
  const { tls: folder } = folders(config)
  makeFolder(folder)
  const claim = await tryClaimFolder(folder)
  if (claim === undefined) throw new Error('another process is getting a certificate')
  const { acmeDirectory: directoryUrl, acmeEmail, acmeKeyId, acmeHmacKey, dnsHook } = tls
  try {
    return await issueCertificate(acmeNamesOf(tls, names.rootHosts), {
      directoryUrl,
      folder,
      challenges: new Challenges(challengesFolder(config)),
      ...(acmeEmail === undefined ? {} : { email: acmeEmail }),
      ...(acmeKeyId === undefined || acmeHmacKey === undefined
        ? {}
        : { externalAccount: { keyId: acmeKeyId, hmacKey: acmeHmacKey } }),
      ...(dnsHook === undefined ? {} : { dns: new DnsHook(resolve(dnsHook), undefined, end) }),
    })
  } finally {
    await claim.release()
  }
}

export interface CertificatesGiven {
  readonly meters: Meters
  readonly log: Log
  /** Hears of certificates that replace those before. */
  readonly onPairs: (pairs: readonly CertificatePair[]) => void
}

/** What a reading of the files came to. */
export interface CertificatesRead {
  /** What cannot be used. What was in use in its place stays. */
  readonly refused: readonly RefusedPair[]
  readonly isOtherCertificate: boolean
}

/** The certificates of the running program: read, watched, and renewed where an ACME server issues them. */
export class ProgramCertificates {
  readonly #sources: CertificateSources
  readonly #current: CurrentCertificates
  readonly #renewal: Renewal | undefined
  readonly #clock: Clock = systemClock
  /** Made here, for as long as there is no other. */
  #own: CertificatePair | undefined

  constructor(
    private readonly config: Config,
    private readonly given: CertificatesGiven,
  ) {
    this.#sources = certificateSources(config)
    this.#current = new CurrentCertificates(this.#sources)
    this.#renewal = config.tls.acme ? this.#renewing() : undefined
  }

  /** The default one first. */
  get pairs(): readonly CertificatePair[] {
    const { pairs } = this.#current
    return pairs.length === 0 && this.#own !== undefined ? [this.#own] : pairs
  }

  /** To be up before the edge threads: a certificate that cannot be used stops the start where there is no other. */
  part(): Part {
    return {
      name: 'certificates',
      start: async () => {
        await this.#open()
        const looking = this.#clock.every(lookMs, () => this.reload())
        return { stop: async () => looking.cancel() }
      },
    }
  }

  /** To be up after the edge threads, which answer the challenges of the ACME server. */
  renewal(): Part[] {
    const renewal = this.#renewal
    if (renewal === undefined) return []
    const start = async (): Promise<RunningPart> => {
      renewal.start()
      return { stop: () => renewal.stop() }
    }
    return [{ name: 'certificate renewal', start }]
  }

  /** Reads what changed, and gives it to the listeners. What cannot be used is logged; what is in use then stays. */
  reload(): CertificatesRead {
    const { log, onPairs } = this.given
    const { isChanged, refused } = this.#current.read(this.#clock.now())
    for (const one of refused) log.error(one, 'a certificate cannot be used: what was in use before stays')
    this.#measure()
    const read = { refused: this.#current.refused, isOtherCertificate: isChanged }
    if (!isChanged) return read
    log.info({ certificates: this.#current.pairs.map(described) }, 'new certificates are in use')
    onPairs(this.pairs)
    return read
  }

  async #open(): Promise<void> {
    const { tls, names } = this.config
    const { refused } = this.#current.read(this.#clock.now())
    const isNamed = refused.some(({ file }) => file === this.#sources.pair?.certFile)
    const isNone = this.#current.pairs.length === 0 && !tls.acme && !tls.selfSigned
    if (isNamed || isNone) {
      const lines = refused.map(({ file, why }) => `${file}: ${why}`)
      throw new Error(
        lines.length === 0 ? `TLS_CERTS_PATH: ${tls.certsPath} holds no certificate` : lines.join('; '),
      )
    }
    for (const one of refused) this.given.log.error(one, 'a certificate cannot be used')
    if (this.#current.pairs.length === 0) {
      const own = tls.acme ? acmeNamesOf(tls, names.rootHosts) : ['localhost', '*.localhost']
      this.#own = await selfSigned(own, this.#clock.now(), ownDays)
    }
    this.#measure()
  }

  #renewing(): Renewal {
    const { log, meters } = this.given
    const { tls, names } = this.config
    const wanted = acmeNamesOf(tls, names.rootHosts)
    const file = issuedFile(folders(this.config).tls, wanted)
    return new Renewal({
      names: wanted,
      current: () => this.#current.pairs.find(({ certFile }) => certFile === file),
      issue: async (end) => {
        log.info({ names: wanted }, 'getting a certificate from the ACME server')
        await issueNow(this.config, end)
        meters.of('tls_renewals_total', { outcome: 'issued' }).add(1)
        this.reload()
      },
      backoff: new Backoff(backoff, this.#clock),
      onFailure: (error) => {
        meters.of('tls_renewals_total', { outcome: 'failed' }).add(1)
        log.error({ err: error }, 'no certificate was issued: the next attempt follows after a pause')
      },
      clock: this.#clock,
    })
  }

  #measure(): void {
    const { meters } = this.given
    const first = Math.min(...this.#current.pairs.map(({ notAfterMs }) => notAfterMs))
    meters.of('tls_certificate_expires_timestamp_seconds').set(Number.isFinite(first) ? first / 1000 : 0)
    meters.of('tls_certificates_refused').set(this.#current.refused.length)
  }
}

function described({ names, issuer, notAfterMs, certFile }: PlacedPair): object {
  return { names, issuer, expires: new Date(notAfterMs).toISOString(), file: certFile }
}
