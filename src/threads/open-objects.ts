import { hostname } from 'node:os'
import { systemClock } from '../actor/clock.js'
import { CredentialsFile } from '../source/objects/s3-credentials.js'
import { S3Objects, type S3Options } from '../source/objects/s3-objects.js'
import type { S3Credentials } from '../source/objects/s3-requests.js'
import type { Settings } from './thread-settings.js'

/** Sockets to the store, and the longest silence of a body. */
const [connectionsMax, stallMaxMs] = [96, 10_000] as const

/** The object store that the settings name; undefined: none. Throws where its credentials cannot be read. */
export function openObjects(
  settings: Settings<'contentStore' | 'retrieval'>,
  more: Pick<S3Options, 'sentBytesPerSecondMin'> = {},
): S3Objects | undefined {
  const { contentStore, retrieval } = settings
  const { kind, region, bucket, timeoutMs: headMs } = contentStore
  if (kind === 'none' || bucket === undefined) return undefined
  const credentials = credentialsOf(settings)
  const endpoint = contentStore.endpoint ?? `https://s3.${region}.amazonaws.com`
  const stallMs = Math.min(retrieval.streamStallMs, stallMaxMs)
  return new S3Objects(
    { endpoint, region, bucket, credentials, headMs, stallMs, connectionsMax, ...more },
    systemClock,
  )
}

function credentialsOf({ contentStore }: Settings<'contentStore'>): S3Credentials | CredentialsFile {
  const { accessKeyId, secretAccessKey, sessionToken, credentialsPath = '' } = contentStore
  if (accessKeyId === undefined || secretAccessKey === undefined) return new CredentialsFile(credentialsPath)
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
}

/** The name of this machine in the store. */
export function nodeName({ contentStore }: Settings<'contentStore'>): string {
  const { nodeName: named } = contentStore
  if (named !== undefined) return named
  const plain = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, 63)
  return plain === '' ? 'gateway' : plain
}
