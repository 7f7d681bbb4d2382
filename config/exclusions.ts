import { list, reloadable } from './setting.js'

/** Whose payments neither the gateway nor the payment service takes. */

export const exclusions = {
  excludedSenders: reloadable(
    list({
      env: 'PAYMENT_EXCLUDED_ADDRESSES',
      default: [],
      allowed: 'addresses, comma between',
      why: 'Payments of these senders are not taken, on chains or by x402: exchanges, whose customers share one address.',
    }),
  ),
}
