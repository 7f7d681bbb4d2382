import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Following, Tip } from '../actor/shared.js'
import { leavingReason } from '../actor/stopping.js'
import { storeStates } from '../actor/store-meters.js'
import { expiryNoticeMs } from '../certificates/check.js'
import { type Health, lifeOf } from '../http/life.js'
import { isDiskFailing } from '../store/disk-errors.js'
import { roomMinBytes } from '../store/disk-full.js'

export interface HealthParts {
  readonly clock: Clock
  readonly meters: Meters
  readonly startedMs: number
  readonly tip: Tip
  readonly following: Following
  /** After so long without a new data item the gateway is unhealthy. Absent: never. */
  readonly itemsSilentMs?: number
}

/** Whether the gateway is well, and if not why. */
export function healthOf({ clock, meters, startedMs, tip, following, itemsSilentMs }: HealthParts): Health {
  const [now, leaving] = [clock.now(), leavingReason()]
  const silentMs = now - Math.max(following.itemIndexedMs, startedMs)
  const reasons = [
    ...(leaving === undefined ? [] : [leaving]),
    ...(tip.height < 0 ? ['no base-layer node has answered yet'] : []),
    ...(following.state === 'halted'
      ? ['a fork is too deep: the index stands still, content is served']
      : []),
    ...(itemsSilentMs !== undefined && silentMs > itemsSilentMs
      ? [`no data item was indexed for ${Math.floor(silentMs / 1000)} seconds`]
      : []),
    ...diskFaults(meters, now),
    ...(meters.total('catalog_damaged') > 0
      ? ['the catalog is damaged: see "A database is broken" in deploy/OPERATING.md']
      : []),
  ]
  const warnings = [
    ...diskWarnings(meters),
    ...storeWarnings(meters),
    ...lookupWarnings(meters),
    ...pushWarnings(meters, now),
    ...certificateWarnings(meters, now),
  ]
  const life = { ...lifeOf({ clock, startedMs }), ...(warnings.length === 0 ? {} : { warnings }) }
  return reasons.length === 0 ? life : { ...life, status: 'unhealthy', reasons }
}

function diskFaults(meters: Meters, nowMs: number): string[] {
  // 0: nobody has looked at the disk yet.
  if (meters.total('data_disk_size_bytes') > 0 && meters.total('data_disk_free_bytes') < roomMinBytes)
    return [
      'the disk of DATA_PATH is full: content is served; what is new is not kept, uploads and payments are refused',
    ]
  if (!isDiskFailing(nowMs)) return []
  return [
    'the disk of DATA_PATH refuses writes: content is served; what is new may not be kept, uploads and payments are refused',
  ]
}

function diskWarnings(meters: Meters): string[] {
  const isLooked = meters.total('data_disk_size_bytes') > 0
  const isTight = meters.total('data_disk_free_bytes') < meters.total('cache_disk_free_min_bytes')
  return isLooked && isTight
    ? ['the disk of DATA_PATH has little room: content up to 1 MiB is served, but not cached']
    : []
}

const storeWords: Readonly<Record<(typeof storeStates)[number], string>> = {
  well: '',
  opening: '',
  'read only': 'may not be written: it is only read',
  'other network': 'is of another network: it is not used',
  'newer format': 'was written by a newer version: it is not used',
  'no conditional writes': 'ignores If-None-Match: it is not used',
  away: 'does not answer: content is fetched from the network',
  credentials: 'does not know AWS_ACCESS_KEY_ID, or not its secret',
  denied: 'refuses access with these credentials',
  bucket: 'has no bucket S3_BUCKET in AWS_REGION',
  full: 'is full: nothing new is put there',
  'daily limit': 'got STORE_DAILY_MAX_BYTES in one day: what is new waits',
  'size limit': 'has STORE_MAX_BYTES of this gateway: nothing new is put there',
  clock: 'says that the clock of this machine is wrong',
}

/** Nothing of this keeps the gateway from serving. */
function storeWarnings(meters: Meters): string[] {
  return storeStates.flatMap((state) => {
    const isSo = storeWords[state] !== '' && meters.value('content_store_state', { state }) > 0
    return isSo ? [`the object store ${storeWords[state]}`] : []
  })
}

function lookupWarnings(meters: Meters): string[] {
  const gateways = meters.total('root_lookup_gateways_failing')
  if (gateways <= 0) return []
  return [
    `${gateways} of the gateways that know where items lie fail: items that no source has are answered 404`,
  ]
}

/** Failures of one minute pass by themselves. */
const pushNoticeSeconds = 60

/** Older blocks are answered from the index here, until they are written. */
function pushWarnings(meters: Meters, nowMs: number): string[] {
  const wellSeconds = meters.total('clickhouse_push_well_seconds')
  const seconds = Math.floor(nowMs / 1000 - wellSeconds)
  return wellSeconds > 0 && seconds > pushNoticeSeconds
    ? [`the index is not written into ClickHouse for ${seconds} seconds: the log says why`]
    : []
}

function certificateWarnings(meters: Meters, nowMs: number): string[] {
  const expires = meters.total('tls_certificate_expires_timestamp_seconds')
  const days = Math.floor((expires - nowMs / 1000) / 86_400)
  const refused = meters.total('tls_certificates_refused')
  return [
    ...(expires > 0 && days < 0 ? ['a certificate of HTTPS has expired'] : []),
    ...(expires > 0 && days >= 0 && expires * 1000 - nowMs < expiryNoticeMs
      ? [`a certificate of HTTPS expires in ${days} days`]
      : []),
    ...(refused > 0 ? [`${refused} certificates of HTTPS cannot be used: see sluice tls status`] : []),
  ]
}
