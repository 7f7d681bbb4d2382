import { createHash, generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import type { Authorization, Client } from 'acme-client'
import { endsWithin } from '../actor/clock.js'
import { keptSecret, removeDrafts, replaceSecret } from '../store/secret-file.js'
import type { Challenges } from './challenges.js'
import type { DnsHook } from './dns-hook.js'
import { OpenRecords } from './open-records.js'

/** An ACME server (RFC 8555), and how this program proves that a name is its own. */
export interface AcmeOptions {
  readonly directoryUrl: string
  readonly email?: string
  /** Needed by some servers (RFC 8555 section 7.3.4). */
  readonly externalAccount?: { readonly keyId: string; readonly hmacKey: string }
  /** Keys of accounts lie here, issued certificates below `issued/`. */
  readonly folder: string
  /** Answers http-01; a wildcard cannot be proven in this way. */
  readonly challenges: Challenges
  /** With it all names are proven by dns-01. */
  readonly dns?: DnsHook
}

/** One request to the server. */
const requestMs = 30_000
/** Bytes of an answer at most: a chain of certificates takes some kilobytes. */
const answerMaxBytes = 2 ** 20
/** How often a failed request is repeated: after 5 s, and 10 s later. A server that is down for longer is tried minutes later. */
const retriesMax = 2
/** The whole of an order. */
const orderMs = 20 * 60_000

/** Below the folder of `AcmeOptions`. */
export const issuedFolder = 'issued'

/** The file of a certificate for these names: its chain and its key. */
export function issuedFile(folder: string, [first = 'none']: readonly string[]): string {
  return join(folder, issuedFolder, `${first.replace('*.', 'wildcard.')}.pem`)
}

/**
 * Gets a certificate for the names (DNS names, at most 100, may begin with `*.`) with a new key of P-256. Writes both into one
 * file, of mode 0600, that takes the place of the old one at once, and returns its path. Rejects with the server's reason.
 */
export async function issueCertificate(names: readonly string[], options: AcmeOptions): Promise<string> {
  const { directoryUrl, email, externalAccount, folder } = options
  await clearLeft(options)
  // Loaded here, because most programs never need it.
  const { default: acme } = await import('acme-client')
  Object.assign(acme.axios.defaults, {
    timeout: requestMs,
    maxContentLength: answerMaxBytes,
    maxRedirects: 0,
  })
  // Its types do not have these settings.
  const { acmeSettings } = acme.axios.defaults as unknown as { acmeSettings: { retryMaxAttempts: number } }
  acmeSettings.retryMaxAttempts = retriesMax
  const client = new acme.Client({
    directoryUrl,
    accountKey: keptSecret(accountFile(folder, directoryUrl), newKey),
    ...(externalAccount && {
      externalAccountBinding: { kid: externalAccount.keyId, hmacKey: externalAccount.hmacKey },
    }),
  })
  // A server that cannot be reached is reported as such, and not taken for one that has no account.
  await withinOrder(client.getTermsOfServiceUrl())
  await withinOrder(register(client, email))
  const key = newKey()
  const [, csr] = await acme.crypto.createCsr({ altNames: [...names] }, key)
  const chain = await withinOrder(
    client.auto({
      csr,
      // The request of this machine to its own public address often does not get through where that of the server does.
      skipChallengeVerification: true,
      challengePriority: [options.dns === undefined ? 'http-01' : 'dns-01'],
      challengeCreateFn: (authorization, { token }, answer) => put(options, authorization, token, answer),
      challengeRemoveFn: (authorization, { token }, answer) => remove(options, authorization, token, answer),
    }),
  )
  const path = issuedFile(folder, names)
  replaceSecret(path, `${chain.trim()}\n${key}`)
  return path
}

/** The client sends an empty change of an account that exists, which servers refuse, so such a one is looked up first. */
async function register(client: Client, email: string | undefined): Promise<void> {
  const exists = await client.createAccount({ onlyReturnExisting: true }).then(
    () => true,
    () => false,
  )
  if (exists) return
  const contact = email === undefined ? {} : { contact: [`mailto:${email}`] }
  await client.createAccount({ termsOfServiceAgreed: true, ...contact })
}

function accountFile(folder: string, directoryUrl: string): string {
  const server = createHash('sha256').update(directoryUrl).digest('hex').slice(0, 16)
  return join(folder, 'accounts', `${server}.key`)
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

async function put(
  { dns, challenges, folder }: AcmeOptions,
  authorization: Authorization,
  token: string,
  answer: string,
): Promise<void> {
  if (dns === undefined) return challenges.put(token, answer)
  const record = { name: recordOf(authorization), value: answer }
  recordsOf(folder).add(record)
  await dns.call('add', record.name, answer)
}

async function remove(
  { dns, challenges, folder }: AcmeOptions,
  authorization: Authorization,
  token: string,
  answer: string,
): Promise<void> {
  if (dns === undefined) return challenges.remove(token)
  const record = { name: recordOf(authorization), value: answer }
  await dns.call('remove', record.name, answer)
  recordsOf(folder).remove(record)
}

function recordsOf(folder: string): OpenRecords {
  return new OpenRecords(join(folder, 'records'))
}

/** Removes what a process left that was killed during an order. Only one process at a time is here. */
async function clearLeft({ folder, challenges, dns }: AcmeOptions): Promise<void> {
  for (const one of ['accounts', issuedFolder, 'records']) removeDrafts(join(folder, one))
  challenges.clear()
  if (dns === undefined) return
  const records = recordsOf(folder)
  for (const record of records.all()) {
    const isRemoved = await dns.call('remove', record.name, record.value).then(
      () => true,
      // The order is more important: a record that stays is removed by the next one. What ails the hook, `add` will tell.
      () => false,
    )
    if (isRemoved) records.remove(record)
  }
}

/** Name of the TXT record (RFC 8555 section 8.4). */
function recordOf({ identifier }: Authorization): string {
  return `_acme-challenge.${identifier.value}`
}

async function withinOrder<Done>(order: Promise<Done>): Promise<Done> {
  if (await endsWithin(order, orderMs)) return order
  throw new Error(`the ACME server did not finish the order within ${orderMs / 60_000} minutes`)
}
