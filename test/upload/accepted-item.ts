import { idOfBytes } from '../../src/format/id.js'
import type { AcceptedItem } from '../../src/upload/records/uploads.js'

/** An item that was accepted, one for each number. */
export const acceptedItem = (at: number): AcceptedItem => ({
  id: idOfBytes(Buffer.alloc(32, at)),
  headerSize: 10,
  owner: 'o'.repeat(43),
  receivedMs: at,
  deadlineHeight: 1,
  winc: '0',
  place: { file: 1, offset: 0, sizeBytes: 11 },
})
