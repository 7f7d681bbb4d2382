import { open } from 'node:fs/promises'
import { decodeBase64url } from '../../format/base64url.js'
import { sha256 } from '../../proof/digest.js'
import { cutLogError, logFileName } from '../../store/segments/log-file.js'
import type { RecordDigest } from '../../store/segments/segment-record.js'
import type { AcceptedItem, LoggedUpload } from '../records/uploads.js'
import { SplitCheck } from './split-check.js'
import type { StorableItem } from './stored-groups.js'

const pieceBytes = 256 * 1024

/**
 * An accepted item as it was when it was logged, to be put into the store later. What it took of free bytes is in the log alone,
 * and counted on this machine. Rejects with the system's error where the disk fails, or the log is cut.
 */
export async function loggedAgain(item: AcceptedItem, logFolder: string): Promise<StorableItem> {
  const { id, headerSize, contentType, place } = item
  const logged: LoggedUpload = {
    id,
    headerSize,
    owner: item.owner,
    receivedMs: item.receivedMs,
    deadlineHeight: item.deadlineHeight,
    winc: item.winc,
    ...(contentType === undefined ? {} : { contentType }),
    ...(item.digest === undefined ? {} : { digest: item.digest }),
    ...(item.logDigest === undefined ? {} : { logDigest: item.logDigest }),
    ...(item.isBundle === true ? { isBundle: true } : {}),
    ...(item.heldAs === undefined ? {} : { heldAs: item.heldAs }),
  }
  return {
    id,
    headerSize,
    contentType: contentType ?? '',
    place,
    sizeBytes: place.sizeBytes,
    digest: await digestOf(item, logFolder),
    meta: Buffer.from(JSON.stringify(logged)),
  }
}

async function digestOf(
  { place, headerSize, digest, logDigest }: AcceptedItem,
  folder: string,
): Promise<RecordDigest> {
  const known = logDigest === undefined ? undefined : decodeBase64url(logDigest)
  // What the disk has made of the bytes since is not sealed as right.
  if (known !== undefined) return { frontBytes: headerSize, digest: known }
  const file = await open(`${folder}/${logFileName(place.file)}`, 'r')
  try {
    // An item of an older release has no digest of its payload: all is read then.
    const wanted = digest === undefined ? place.sizeBytes : headerSize
    const whole = digest === undefined ? new SplitCheck(new Uint8Array(32)) : undefined
    const front: Uint8Array[] = []
    for (let at = 0; at < wanted; ) {
      const buffer = Buffer.alloc(Math.min(pieceBytes, wanted - at))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, place.offset + at)
      if (bytesRead === 0) throw cutLogError(place.file)
      const bytes = buffer.subarray(0, bytesRead)
      if (whole === undefined) front.push(bytes)
      else whole.update(bytes)
      at += bytesRead
    }
    if (whole !== undefined) return whole.found()
    return { frontBytes: headerSize, digest: sha256(...front, Buffer.from(digest ?? '', 'base64url')) }
  } finally {
    await file.close()
  }
}
