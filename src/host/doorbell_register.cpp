#include "belfry/host/doorbell_register.hpp"

#include "host/devx_objects.hpp"

namespace belfry::host {

struct DoorbellRegister::Impl {
  explicit Impl(const Context& c) : context(c), uar(c.get()) {}
  Context context;  // keeps the device open for longer than the register
  Uar uar;
};

DoorbellRegister::DoorbellRegister(const Context& context) : impl_(std::make_shared<const Impl>(context)) {}

void* DoorbellRegister::address() const { return impl_->uar.register_address(); }
std::uint32_t DoorbellRegister::page_id() const { return impl_->uar.page_id(); }
bool DoorbellRegister::dedicated() const { return impl_->uar.dedicated(); }

}  // namespace belfry::host
