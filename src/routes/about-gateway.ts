import type { Following, Tip } from '../actor/shared.js'
import type { SigningKey } from '../attest/keys.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import { encodeBase64url } from '../format/base64url.js'
import type { HealthParts } from './health.js'
import type { MetricsParts } from './metrics-text.js'

export interface InfoParts extends HealthParts, MetricsParts {
  readonly vocabulary: Vocabulary
  readonly network: string
  readonly wallet?: string
  /** Addresses of upload services. */
  readonly bundlers?: readonly string[]
  /** Which bundles are opened and which items indexed. */
  readonly filters?: Readonly<Record<'ans104UnbundleFilter' | 'ans104IndexFilter', object>>
  /** Parts of the info answer that other rooms provide. */
  readonly sections?: Readonly<Record<string, unknown>>
  /** Absent: answers are not signed. */
  readonly key?: SigningKey
  /** What the page at `/` alone shows. */
  readonly beside?: Beside
}

/** What people find beside this gateway, and what its content costs. */
export interface Beside {
  /** Addresses of services of this program, as this machine reaches them. */
  readonly upload?: string
  readonly payment?: string
  /** Where all visitors reach the payment service. */
  readonly publicPayment?: string
  /** Where the console listens; port 0: printed at the start of the program. Absent: there is none. */
  readonly console?: { readonly address: string; readonly port: number }
  /** Names are answered below these hosts. */
  readonly rootHosts: readonly string[]
  readonly resolvers: readonly string[]
  /** What each client gets without paying. Absent: nobody is limited. */
  readonly allowance?: { readonly bytes: number; readonly bytesPerSecond: number }
  /** What content costs beyond that. Absent: nothing is sold. */
  readonly price?: { readonly perByte: string; readonly minimum: string; readonly perGiB: string }
}

/** The info answer: identity, settings that concern clients, and progress of the index. */
export function aboutGateway({
  wallet,
  bundlers,
  release,
  network,
  vocabulary,
  tip,
  following,
  key,
  filters,
  sections,
}: InfoParts): Record<string, unknown> {
  return {
    ...(wallet === undefined ? {} : { wallet }),
    release,
    network,
    vocabulary: vocabulary.name,
    ...filters,
    supportedManifestVersions: ['0.1.0', '0.2.0'],
    ...(bundlers === undefined ? {} : { services: { bundlers: bundlers.map((url) => ({ url })) } }),
    ...(tip.height < 0 ? {} : { height: tip.height }),
    index: progress(tip, following),
    ...(key === undefined ? {} : { httpsig: signing(key) }),
    ...sections,
  }
}

/** Progress of the index. `etaSeconds` is an estimate from the rate of the last seconds; absent where that is 0. */
function progress(tip: Tip, following: Following): Record<string, unknown> {
  const { state, height, blocksPerSecond, bundlesWaiting, missing } = following
  const lag = Math.max(tip.height - height, 0)
  const isMoving = state === 'importing' && blocksPerSecond > 0
  return {
    state,
    ...(height < 0 ? {} : { height, lag }),
    ...(isMoving ? { blocksPerSecond, etaSeconds: Math.round(lag / blocksPerSecond) } : {}),
    bundlesWaiting,
    missingTransactions: missing,
  }
}

function signing({ keyId, publicKey, solanaAddress }: SigningKey): Record<string, string> {
  return { algorithm: 'ed25519', keyId, publicKey: encodeBase64url(publicKey), solanaAddress }
}
