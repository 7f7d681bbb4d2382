import type { Clock } from '../actor/clock.js'
import type { Tip } from '../actor/shared.js'
import type { Admission } from '../admission/admission-port.js'
import type { ClientOf } from '../serving/in-slot.js'
import type { RequestLog } from '../serving/request-log.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import type { CacheFiller } from './cache-filler.js'
import type { Finder, Transfers } from './gateway-parts.js'
import type { GatewayOptions } from './gateway-rules.js'
import type { Guard } from './guard.js'
import type { HeadWriter } from './head-writer.js'
import type { Locator } from './locator.js'
import type { Touches } from './touches.js'

/** What the steps of one answer with content are made of. */
export interface DeliveryParts {
  readonly requestLog: RequestLog
  readonly locator: Locator
  readonly writer: HeadWriter
  readonly transfers: Transfers
  readonly touches: Touches
  readonly cacheFiller: CacheFiller
  readonly tip: Tip
  readonly clock: Clock
  readonly admission: Admission | undefined
  readonly finder: Finder | undefined
  readonly guard: Guard | undefined
  readonly options: GatewayOptions
  readonly clientOf: ClientOf
  /** Name of the header with the hops. */
  readonly hopsName: string
  /** Name of the header of a 404 that comes from memory. */
  readonly absentName: string
}

/** Gets content that a source opened, before it is sent. True: it took over the content and will answer the exchange. */
export type Intercept = (opened: OpenedContent) => boolean
