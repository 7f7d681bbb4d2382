import { custom, maybeText, readUrl, secret } from './setting.js'

/** Payments by card: the provider that charges them. */

export const cards = {
  stripeKey: secret(
    maybeText({
      env: 'STRIPE_SECRET_KEY',
      allowed: 'a key of Stripe',
      shape: /^[\w-]{8,256}$/,
      why: 'Cards are charged by Stripe. Unset: a page on this machine that moves no money, on devnet only.',
    }),
  ),
  stripeWebhookSecret: secret(
    maybeText({
      env: 'STRIPE_WEBHOOK_SECRET',
      allowed: 'a secret of Stripe',
      shape: /^[\w-]{8,256}$/,
      why: 'Signs what Stripe tells at /v1/stripe-webhook.',
    }),
  ),
  stripeUrl: custom<string | undefined>({
    env: 'STRIPE_API_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readUrl,
    why: 'Another server that speaks the interface of Stripe.',
  }),
}

/** What is wrong with these settings taken together. */
export function cardFaults(given: {
  readonly stripeKey: string | undefined
  readonly stripeWebhookSecret: string | undefined
}): string[] {
  return (given.stripeKey === undefined) === (given.stripeWebhookSecret === undefined)
    ? []
    : ['STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET need each other']
}
