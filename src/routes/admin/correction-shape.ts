import * as z from 'zod'

/** Body of the order to correct a balance. */
export const correctionShape = z.object({
  key: z.string(),
  address: z.string(),
  winc: z.string(),
  note: z.string(),
})
