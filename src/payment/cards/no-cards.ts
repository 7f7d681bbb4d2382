import { type Refusal, refuse } from '../../format/refusal.js'
import type { CardProvider } from './card-provider.js'

const nobody = (): Refusal => refuse('upstream', 'self', 'Stripe is not set up here')

/** The provider of a service that takes no cards. */
export const noCards: CardProvider = {
  name: 'local',
  open: async () => nobody(),
  read: async () => undefined,
  since: async () => ({ entries: [] }),
  taken: async () => ({ entries: [] }),
  find: async () => undefined,
  refund: async () => nobody(),
}
