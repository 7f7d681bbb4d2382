import type { Commands } from './dispatch.js'

/** Commands of those who upload, pay and fetch: they need no part of the server, and are packed with the client as well. */
export const clientCommands: Commands = {
  key: async () => (await import('./key-command.js')).keyCommand,
  put: async () => (await import('./put.js')).put,
  deploy: async () => (await import('./deploy.js')).deploy,
  sync: async () => (await import('./deploy.js')).sync,
  get: async () => (await import('./get.js')).getCommand,
  drive: async () => (await import('./drive.js')).driveCommand,
  price: async () => (await import('./account-commands.js')).price,
  balance: async () => (await import('./account-commands.js')).balance,
  'top-up': async () => (await import('./account-commands.js')).topUpCommand,
  share: async () => (await import('./account-commands.js')).share,
  history: async () => (await import('./account-commands.js')).history,
}
