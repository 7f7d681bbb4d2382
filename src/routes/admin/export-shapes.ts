import * as z from 'zod'

/** Heights have 4 bytes in the index; the highest value means that there is none. */
const heightMax = 0xffff_fffe
export const height = z.number().int().min(0).max(heightMax)
const count = z.number().int().min(1).max(1_000_000_000)
/** Body of the order to begin an export. */
export const exportShape = z.object({
  outputDir: z
    .string()
    .max(512)
    .regex(/^[\w./=-]+$/),
  startHeight: height,
  endHeight: height,
  maxFileRows: count.default(1_000_000),
  heightPartitionSize: count.default(1000),
  skipL1Transactions: z.boolean().default(false),
  skipL1Tags: z.boolean().default(false),
})
