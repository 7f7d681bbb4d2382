import { receiptLine } from '../admission/admission-port.js'
import type { Head } from '../http/exchange.js'

const shared = /\r\nCache-Control: public/gi
const own = '\r\nCache-Control: private'

/**
 * The head as caches are to have it: an answer about a payment is for who paid. A cache that many share would tell them
 * all of it, and give away what was sold.
 */
export function forPayer(head: Head): Head {
  if ('split' in head) {
    if (!head.lines.includes(receiptLine)) return head
    const { before, after } = head.split
    return { ...head, split: { before, after: after.replace(shared, own) } }
  }
  return head.block.includes(receiptLine) ? { ...head, block: head.block.replace(shared, own) } : head
}
