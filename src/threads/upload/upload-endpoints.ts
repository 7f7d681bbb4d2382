import { rmSync } from 'node:fs'
import type { Clock } from '../../actor/clock.js'
import { HeldMemory } from '../../actor/held-memory.js'
import type { Log } from '../../actor/log.js'
import { TimedTurns } from '../../actor/timed-turns.js'
import type { Clients } from '../../admission/clients.js'
import type { ItemsElsewhere } from '../../cluster/items-elsewhere.js'
import type { Refusal } from '../../format/refusal.js'
import type { HtmlPage } from '../../http/page.js'
import type { CreditsPort, UsdcPort } from '../../payment/credits-port.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Sales } from '../../upload/charging/sales.js'
import type { ServiceOfSeveral } from '../../upload/charging/several-services.js'
import type { ItemIntake } from '../../upload/intake/item-intake.js'
import type { LateItems } from '../../upload/intake/late-items.js'
import { SingleUpload } from '../../upload/intake/single-upload.js'
import { Multipart } from '../../upload/parts/multipart.js'
import { MultipartRecords } from '../../upload/parts/multipart-records.js'
import { OpenUploads } from '../../upload/parts/open-uploads.js'
import { PaidParts } from '../../upload/parts/paid-parts.js'
import { PartFiles } from '../../upload/parts/part-files.js'
import type { PartRecords } from '../../upload/parts/part-records.js'
import type { PartStore } from '../../upload/parts/part-store.js'
import { ResumableUploads } from '../../upload/parts/resumable.js'
import { RawUpload, type RawUploadParts } from '../../upload/raw/raw-upload.js'
import type { FreePools } from '../../upload/records/free-pools.js'
import type { Uploads } from '../../upload/records/uploads.js'
import { refusalAnswer, type UploadAnswer } from '../../upload/requests/upload-answers.js'
import type { UploadRoute } from '../../upload/requests/upload-route.js'
import { HeldRoom, type RoomBounds, sharesOfParts, sharesOfRequests } from '../../upload/room/held-room.js'
import { questionTurns } from '../../upload/routes/credits-routes.js'
import { multipartRoutes } from '../../upload/routes/multipart-routes.js'
import { resumableRoutes } from '../../upload/routes/resumable-routes.js'
import { UploadHealth } from '../../upload/routes/upload-health.js'
import { pageScripts } from '../../upload/routes/upload-page.js'
import { uploadRoutes } from '../../upload/routes/upload-routes.js'
import { usdcUploadRoutes } from '../../upload/routes/usdc-routes.js'
import { UsdcUploads } from '../../upload/usdc/usdc-uploads.js'

/** What items are taken with, by every way in which they can come. */
export interface UploadEndpointsParts {
  readonly uploads: Uploads
  readonly pools: FreePools
  readonly sales: Sales
  readonly intake: ItemIntake
  readonly itemLog: DurableLog
  /** What was accepted before the start, and is not in the tables; absent: nothing. */
  readonly late?: Pick<LateItems, 'refusal'>
  /** Absent: nobody is paid here. */
  readonly credits?: CreditsPort
  readonly usdc?: UsdcPort
  /** Absent: no other upload service has the same payment service. */
  readonly service?: ServiceOfSeveral
  /** The answer where the disk has no room for so many more bytes; undefined: it has. */
  readonly noRoomFor: (bytes?: number) => UploadAnswer | undefined
  /** Why the object store takes no uploads; undefined: it does, or is not waited for. */
  readonly storeRefusal?: () => Refusal | undefined
  /** The same, for the health check: also between two trials of a store that fails. */
  readonly storeFault?: () => Refusal | undefined
  /** What does not get on, although uploads are taken. */
  readonly warnings?: () => readonly string[]
  readonly disk: RoomBounds['disk']
  readonly itemMaxBytes: number
  readonly blockedOwners: ReadonlySet<string>
  /** Folder of parts of items that are not whole yet, and how many bytes may lie there. */
  readonly partsFolder: string
  readonly partsMaxBytes: number
  /** Uploads in parts that other machines go on with, too; absent: they belong to this machine. */
  readonly shared?: { readonly records: PartRecords; readonly files: PartStore }
  /** What other machines have accepted; absent: there are none. */
  readonly machines?: Pick<ItemsElsewhere, 'has' | 'receiptOf'>
  /** Makes ids of uploads out of payments. */
  readonly secret: Uint8Array
  /** Signs items of bytes that nobody has signed. */
  readonly signer: RawUploadParts['signer']
  /** In the addresses that offers of payments name. */
  readonly protocol: 'http' | 'https'
  readonly clients: Clients
  readonly height: () => number | undefined
  readonly startedMs: number
  /** At `/`, at `/upload`, and at `/info`. */
  readonly page: HtmlPage
  readonly uploadPage: HtmlPage
  readonly info: () => object
  readonly clock: Clock
  readonly logger: Log
  /** Memory of all requests: small items while they come. 128 MiB where absent. */
  readonly memoryMaxBytes?: number
}

export interface UploadEndpoints {
  readonly routes: readonly UploadRoute[]
  readonly records: PartRecords
  readonly open: OpenUploads
  /** What parts, and requests that are read, hold of the disk. */
  readonly partsRoom: HeldRoom
  readonly arriving: HeldRoom
  readonly memory: HeldMemory
}

const usualMemoryMaxBytes = 128 * 1024 * 1024

/** Every way in which items come, as routes: at once, in parts, resumable, unsigned, paid for by USDC. */
export function openUploadEndpoints(parts: UploadEndpointsParts): UploadEndpoints {
  const { uploads, pools, sales, intake, itemLog, credits, usdc, disk, itemMaxBytes } = parts
  const noRoomFor = (bytes?: number): UploadAnswer | undefined => {
    const refusal = parts.storeRefusal?.()
    return parts.noRoomFor(bytes) ?? (refusal === undefined ? undefined : refusalAnswer(refusal))
  }
  const { clients, clock, logger, blockedOwners, partsMaxBytes } = parts
  const arriving = new HeldRoom({ ...sharesOfRequests, disk })
  const memory = new HeldMemory(parts.memoryMaxBytes ?? usualMemoryMaxBytes)
  const taking = { intake, itemLog, itemMaxBytes, blockedOwners, noRoomFor, arriving, memory }
  const single = new SingleUpload(taking)
  const bought = {
    ...(usdc === undefined ? {} : { usdc }),
    ...(parts.service === undefined ? {} : { service: parts.service }),
  }
  const clientOf = (request: Parameters<Clients['of']>[0]): string => clients.of(request).address
  const usdcUploads = new UsdcUploads({ sales, single, protocol: parts.protocol, clientOf, clock, ...bought })
  const { records, files, isHere } = partsOf(parts)
  const paid =
    usdc === undefined || credits === undefined
      ? undefined
      : new PaidParts({ ...parts, usdcUploads, usdc, credits, records })
  const partsRoom = new HeldRoom({
    ...sharesOfParts,
    maxBytes: partsMaxBytes,
    disk: isHere ? disk : elsewhere,
  })
  const open = new OpenUploads({
    ...taking,
    uploads,
    records,
    ...(paid === undefined ? {} : { paid }),
    files,
    partsRoom,
    ...(parts.machines === undefined ? {} : { machines: parts.machines }),
    clock,
    logger,
  })
  const raw = rawUpload(parts, { ...taking, pools, usdcUploads, clock })
  const multipart = new Multipart(open, paid)
  const resumable = new ResumableUploads(open, single, clients)
  const routes = routesOf(parts, { multipart, usdcUploads, raw, resumable, single })
  return { routes, records, open, partsRoom, arriving, memory }
}

/** What lies in an object store takes nothing of this disk. */
const elsewhere: RoomBounds['disk'] = { leftBytes: Number.POSITIVE_INFINITY, expect: () => undefined }

/** `isHere`: parts lie on this disk. */
function partsOf({ shared, uploads, clock, partsFolder }: UploadEndpointsParts): {
  readonly records: PartRecords
  readonly files: PartStore
  readonly isHere: boolean
} {
  if (shared !== undefined) return { ...shared, isHere: false }
  const records = new MultipartRecords(uploads.environment, clock)
  return { records, files: new PartFiles(partsFolder), isHere: true }
}

interface Ways {
  readonly multipart: Multipart
  readonly usdcUploads: UsdcUploads
  readonly raw: RawUpload
  readonly resumable: ResumableUploads
  readonly single: SingleUpload
}

function routesOf(
  parts: UploadEndpointsParts,
  { multipart, usdcUploads, raw, resumable, single }: Ways,
): UploadRoute[] {
  const { uploads, pools, credits, usdc, clients, clock, startedMs, height, noRoomFor, page, info } = parts
  const { storeFault: storeRefusal = parts.storeRefusal ?? (() => undefined) } = parts
  const asking = credits === undefined ? {} : { credits }
  const warning = parts.warnings === undefined ? {} : { warnings: parts.warnings }
  const turns = new TimedTurns(questionTurns, clock)
  const health = new UploadHealth({
    clock,
    startedMs,
    height,
    noRoomFor,
    storeRefusal,
    ...warning,
    ...asking,
  })
  return [
    ...multipartRoutes(multipart, clients),
    ...usdcUploadRoutes({
      usdcUploads,
      raw,
      clients,
      ...(usdc === undefined ? {} : { usdc }),
      turns,
      ...(credits === undefined ? {} : { price: (bytes: number) => credits.price(bytes) }),
    }),
    ...resumableRoutes({ resumable, page: parts.uploadPage, script: pageScripts() }),
    ...uploadRoutes({
      uploads,
      single,
      clients,
      pools,
      turns,
      ...asking,
      health,
      page,
      info,
      lateRefusal: () => parts.late?.refusal,
    }),
  ]
}

/** Takes bytes that nobody has signed. What an earlier process was reading is of no use any more. */
function rawUpload(
  { partsFolder, signer }: UploadEndpointsParts,
  given: Omit<RawUploadParts, 'folder' | 'signer'>,
): RawUpload {
  const folder = `${partsFolder}-raw`
  rmSync(folder, { recursive: true, force: true })
  return new RawUpload({ ...given, signer, folder })
}
