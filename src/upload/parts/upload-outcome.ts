import type { UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import type { MultipartRecord } from './multipart-record.js'

/** Who uploads, as a record has it: what is undefined was not written down. Older releases named the address `range`. */
export function uploaderIn({ uploader }: MultipartRecord): Uploader {
  const { range, ...known }: Partial<Uploader> & { readonly range?: string } = uploader ?? {}
  return { address: range, token: undefined, paidBy: [], ...known }
}

/** What an answer decides; undefined: nothing, it may be tried again. */
export function outcomeOf({
  status,
  failed,
}: UploadAnswer): Exclude<MultipartRecord['state'], 'open' | 'asked'> | undefined {
  if (status === 200 || status === 202) return 'finalized'
  // With 429 nothing is wrong with the item: its client has done too much of something.
  if (status < 400 || status >= 500 || status === 429) return undefined
  if (failed !== undefined) return `${failed}_failed`
  return status === 402 ? 'underfunded' : 'invalid'
}
