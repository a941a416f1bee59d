module.exports = ({ config }) => ({
  ...config,
  name: process.env.APP_VARIANT === "preview" ? `${config.name} (preview)` : config.name,
});
