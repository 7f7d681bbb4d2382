import { isRefusal, type Refusal } from '../format/refusal.js'
import { l1Files, readL1Band } from '../parquet/l1-band.js'
import { checkL1 } from '../parquet/l1-check.js'
import { type BandAccount, type BandKind, l1Kind } from './publication.js'

/** Parquet bands, for the publisher and the subscriber. */
export const l1Bands: BandKind = {
  ...l1Kind,
  async describe(folder): Promise<BandAccount | Refusal> {
    const band = await readL1Band(folder)
    if (isRefusal(band)) return band
    const { heightRange, supersedes = [], tables, schema } = band
    return {
      files: l1Files,
      heightRange,
      records: tables.transactions.rows,
      metadata: { schema, ...(supersedes.length === 0 ? {} : { supersedes }) },
      supersedes,
    }
  },
  async check(folder): Promise<Refusal | undefined> {
    const band = await readL1Band(folder)
    return isRefusal(band) ? band : checkL1(folder, band)
  },
}
